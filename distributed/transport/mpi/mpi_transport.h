// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/distributed/transport/ranks/rank_transport.h"

namespace rill {

// A transport between the ranks of an MPI job, by any MPI-3.1. Begins MPI
// (MPI_Init), which can be done once in a process: FAILED_PRECONDITION where
// that was done before, by this or by others.
//
// A rank that dies ends the job, as MPI has it: mpirun kills the others. A rank
// that only hangs is not noticed, and calls to it end at their deadlines.
//
// The last to go of the transport and all that comes from it ends MPI
// (MPI_Finalize). That waits until all ranks are there, without a deadline, as
// MPI has none. Meanwhile the rank still answers that nobody listens.
//
// Thread-safety: as Transport; MPI is used nowhere else in the process.
// Cost: large columns are sent from where they are, and arrive in memory that
// is used again, of which up to 256 MiB are kept. A thread that waits for a
// reply or for a request calls MPI itself for a while, one at a time
// (MPI_THREAD_SERIALIZED). Else a thread of the transport has to ask MPI for
// what others send: all the time while there is some. Without, it asks less and
// less, at last each millisecond. It rests while others ask, and for up to two
// milliseconds behind the last of them.
//
// Example (in each rank):
//   RILL_ASSIGN_OR_RETURN(auto transport, CreateMpiTransport());
//   if (transport->rank() == 0) {
//     RILL_ASSIGN_OR_RETURN(server, transport->Listen("", service));
//   } else {
//     RILL_ASSIGN_OR_RETURN(connection,
//                           transport->Connect("rank:0", deadline));
//   }
absl::StatusOr<std::unique_ptr<RankTransport>> CreateMpiTransport();

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_MPI_MPI_TRANSPORT_H_
