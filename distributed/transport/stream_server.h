// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_STREAM_SERVER_H_
#define RILL_DISTRIBUTED_TRANSPORT_STREAM_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/call_threads.h"
#include "rill/distributed/transport/running_calls.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// The streams of a server, for engines that find streams to it by themselves.
//
// Shutdown lets go of the service. Where calls still run, the last of them does
// on its thread, before it ends.
// Thread-safety: thread-safe. Its mutex is not held while others are called.
// Cost: Open is O(streams).
class StreamServer {
 public:
  // `threads` outlives Shutdown, and may be shared.
  StreamServer(std::string address, std::shared_ptr<Service> service,
               CallThreads* threads)
      : address_(std::move(address)),
        threads_(threads),
        service_(std::move(service)) {}

  const std::string& address() const { return address_; }

  // UNAVAILABLE behind Shutdown. The stream serves for as long as the engine
  // keeps it.
  absl::StatusOr<std::shared_ptr<ServedStream>> Open(
      std::string method, std::string peer, int64_t window,
      std::unique_ptr<ReplyWay> way);

  // As Server::Shutdown.
  absl::Status Shutdown(absl::Time deadline);
  // ServedStream::Cut for each stream there is.
  void Cut(const absl::Status& why);
  // Takes no more calls and cuts all streams. Shutdown still waits for calls
  // under way.
  void Kill(const absl::Status& why);

 private:
  std::vector<std::shared_ptr<ServedStream>> Streams()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string address_;
  CallThreads* const threads_;
  const std::shared_ptr<RunningCalls> calls_ = std::make_shared<RunningCalls>();
  absl::Mutex mu_;
  std::shared_ptr<Service> service_ ABSL_GUARDED_BY(mu_);  // Null: shut down.
  std::vector<std::weak_ptr<ServedStream>> streams_ ABSL_GUARDED_BY(mu_);
};

// The Server of an engine's user. `leave` is called before each Shutdown: the
// engine finds the server no more. Captures of it live as long as the Server.
std::unique_ptr<Server> MakeServer(std::shared_ptr<StreamServer> streams,
                                   std::function<void()> leave);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_STREAM_SERVER_H_
