// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/distributed/transport/ranks/rank_packet.h"
#include "rill/distributed/transport/reply_window.h"
#include "rill/distributed/transport/running_calls.h"
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
// them, and what these structs hold.
// Thread-safety: thread-safe.
class RankStreams {
 public:
  struct ServerState {
    Place place;
    std::shared_ptr<Service> service;
    bool is_down = false;
    RunningCalls calls;
  };
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
  absl::StatusOr<std::shared_ptr<ServerState>> Add(
      Place place, std::shared_ptr<Service> service);
  absl::Status Shutdown(ServerState* server, absl::Time deadline);

  // Sends word to the server, but does not wait for it; Ask does that.
  absl::StatusOr<std::shared_ptr<Client>> Open(Place place, std::string method,
                                               int64_t window);
  absl::Status Ask(Client* client, absl::Time deadline);
  absl::Status Send(Client* client, const Message& request,
                    absl::Time deadline);
  absl::StatusOr<Reply> Receive(Client* client, absl::Time deadline);
  void Close(Client* client);

 private:
  struct Request {
    Message message;
    absl::Time deadline;
  };
  // A stream where it is served.
  struct Served {
    int peer = 0;
    int64_t id = 0;
    std::shared_ptr<ServerState> server;
    std::string method;
    std::deque<Request> requests = {};
    bool is_running = false;  // A worker has it, or will.
    bool has_ended = false;   // By the client.
  };
  static constexpr int kAllRanks = -1;

  explicit RankStreams(std::unique_ptr<RankCarrier> carrier)
      : carrier_(std::move(carrier)) {}

  void Post(int rank, const RankPacket& packet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PostEnded(int rank, int64_t stream, absl::string_view why,
                 const Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The carrier's events.
  void Arrive(int rank, std::shared_ptr<Buffer> bytes);
  void OpenServed(int rank, const RankPacket& packet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ArriveAtServer(int rank, RankPacket packet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ArriveAtClient(int rank, RankPacket packet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseRank(int rank, const absl::Status& why);

  // On the workers: as many threads as streams had a request at once.
  void Work();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !ready_.empty() || is_stopping_;
  }
  void Serve(Served* served);
  FramePieces CarryOut(const Served& served, const Request& request) const;
  absl::StatusOr<FramePieces> Encode(const RankPacket& packet) const;
  // Its server was shut down.
  void EndServed(const Served& served) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<RankCarrier> carrier_;
  bool has_started_ = false;  // Of Create.
  absl::Mutex mu_;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  int64_t opened_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<ServerState>> servers_
      ABSL_GUARDED_BY(mu_);  // By name.
  std::map<std::pair<int, int64_t>, std::shared_ptr<Served>> served_
      ABSL_GUARDED_BY(mu_);  // By peer and id.
  std::map<int64_t, std::shared_ptr<Client>> clients_ ABSL_GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Served>> ready_ ABSL_GUARDED_BY(mu_);
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;  // Workers.
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill::ranks_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_STREAMS_H_
