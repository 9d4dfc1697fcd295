// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_MPI_DOC_EXAMPLES_CONTEXT_H_
#define RILL_DISTRIBUTED_TRANSPORT_MPI_DOC_EXAMPLES_CONTEXT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/mpi/mpi_transport.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/distributed/transport/transport.h"

// Names that the example of this header takes for granted.
namespace rill::doc_examples {

extern std::unique_ptr<Server> server;
extern std::unique_ptr<Connection> connection;
extern const std::shared_ptr<Service> service;
extern const absl::Time deadline;

}  // namespace rill::doc_examples

#endif  // RILL_DISTRIBUTED_TRANSPORT_MPI_DOC_EXAMPLES_CONTEXT_H_
