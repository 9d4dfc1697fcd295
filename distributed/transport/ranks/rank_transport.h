// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_TRANSPORT_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

namespace ranks_internal {
class RankStreams;  // rank_streams.h
}  // namespace ranks_internal

// A transport between ranks over anything that carries blocks of bytes
// (RankCarrier), say MPI (mpi/mpi_transport.h).
//
// An address is "rank:2", or "rank:2/name" where a rank has several servers.
// Ranks listen at their own; an empty address is "rank:<own>". Peers are named
// "rank 2".
//
// Calls to a rank that hangs end at their deadlines. The carrier says how ranks
// that are gone are noticed.
//
// Servers, connections and streams may outlive the transport; the last of them
// to go waits for calls under way and finishes the carrier. A service must not
// be what keeps that last one.
// Thread-safety: thread-safe.
// Cost: small columns of a message are copied into one block, and all are read
// where they arrive. Threads for as many calls as ran at once.
class RankTransport final : public Transport {
 public:
  // Starts the carrier, whose errors these are. INVALID_ARGUMENT where its
  // blocks are too short.
  static absl::StatusOr<std::unique_ptr<RankTransport>> Create(
      std::unique_ptr<RankCarrier> carrier);
  ~RankTransport() override;

  int rank() const;
  int num_ranks() const;

  // INVALID_ARGUMENT for an address that is none, or another rank's.
  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, std::shared_ptr<Service> service) override;
  // INVALID_ARGUMENT for an address that is none; DEADLINE_EXCEEDED where the
  // rank does not answer.
  absl::StatusOr<std::unique_ptr<Connection>> Connect(
      const std::string& address, absl::Time deadline) override;

 private:
  explicit RankTransport(std::shared_ptr<ranks_internal::RankStreams> streams);

  const std::shared_ptr<ranks_internal::RankStreams> streams_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_TRANSPORT_H_
