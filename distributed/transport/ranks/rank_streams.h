// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/call_threads.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/distributed/transport/ranks/rank_packet.h"
#include "rill/distributed/transport/reply_window.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/stream_server.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/frames/frame.h"

namespace rill::ranks_internal {

// Where a server is: "rank:2", or "rank:2/name".
struct Place {
  int rank = 0;
  std::string name = {};

  std::string ToString() const;
};

// All streams of a rank, of its clients and of its servers. One mutex guards
// them. Neither services, streams nor the carrier are called with it.
// Thread-safety: thread-safe.
class RankStreams {
 public:
  // A stream where it was opened.
  struct Client {
    Client(int64_t id, Place where, std::string what, int64_t window)
        : id(id),
          place(std::move(where)),
          method(std::move(what)),
          replies(method, window, place.ToString()) {}

    int64_t id;
    Place place;
    std::string method;
    ReplyWindow replies;
  };

  // Starts the carrier.
  static absl::StatusOr<std::shared_ptr<RankStreams>> Create(
      std::unique_ptr<RankCarrier> carrier);
  // Waits for calls under way, then finishes the carrier.
  ~RankStreams();

  int rank() const { return carrier_->rank(); }
  int num_ranks() const { return carrier_->num_ranks(); }

  // ALREADY_EXISTS.
  absl::StatusOr<std::shared_ptr<StreamServer>> Add(
      const Place& place, std::shared_ptr<Service> service);
  // It is found no more.
  void Remove(const std::string& name, const StreamServer* server);

  // Sends word to the server, but does not wait for it; Ask does that.
  // INVALID_ARGUMENT where the names are longer than the carrier takes.
  absl::StatusOr<std::shared_ptr<Client>> Open(Place place, std::string method,
                                               int64_t window);
  absl::Status Ask(Client* client, absl::Time deadline);
  absl::Status Send(Client* client, const Message& request,
                    absl::Time deadline);
  absl::StatusOr<Reply> Receive(Client* client, absl::Time deadline);
  void Close(Client* client);

 private:
  class WayBack;
  static constexpr int kAllRanks = -1;

  explicit RankStreams(std::unique_ptr<RankCarrier> carrier);

  absl::StatusOr<FramePieces> Encode(const RankPacket& packet) const;
  // For packets that every carrier takes.
  void Post(int rank, const RankPacket& packet) const;
  void PostEnded(int rank, int64_t stream, const absl::Status& why) const;

  // The carrier's events.
  void Arrive(int rank, std::shared_ptr<Buffer> bytes);
  void OpenServed(int rank, const RankPacket& packet);
  void ArriveAtServer(int rank, RankPacket packet);
  void ArriveAtClient(int rank, RankPacket packet);
  void LoseRank(int rank, const absl::Status& why);

  const std::unique_ptr<RankCarrier> carrier_;
  bool has_started_ = false;  // Of Create.
  absl::Mutex mu_;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  int64_t opened_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<StreamServer>> servers_
      ABSL_GUARDED_BY(mu_);  // By name.
  std::map<std::pair<int, int64_t>, std::shared_ptr<ServedStream>> served_
      ABSL_GUARDED_BY(mu_);  // By peer and id.
  std::map<int64_t, std::shared_ptr<Client>> clients_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<CallThreads> threads_;
};

}  // namespace rill::ranks_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_
