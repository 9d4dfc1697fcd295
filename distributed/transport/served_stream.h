// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_SERVED_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_SERVED_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/distributed/transport/call_threads.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/running_calls.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// The way from a stream's server back to its client: all that an engine has to
// be for a ServedStream. Reply and End wait for nobody. Calls come one at a
// time, but for Cut, and what comes during Await.
class ReplyWay {
 public:
  virtual ~ReplyWay() = default;

  // Before each call begins, for engines that delay requests. Returns soon
  // behind the end of the stream; then there is no call.
  virtual void Await() {}
  // Calls the service; engines that lose and repeat calls do it otherwise.
  // Nothing: there is no reply, and the server takes no more of the stream.
  virtual std::optional<absl::StatusOr<Message>> Call(Service& service,
                                                      const CallInfo& info,
                                                      const Message& request) {
    return CallByDeadline(service, info, request);
  }
  // To the oldest request.
  virtual void Reply(absl::StatusOr<Message> reply) = 0;
  // The server has ended the stream.
  virtual void End(const absl::Status& why) = 0;
  // ServedStream::Cut came, for engines that cut ways.
  virtual void Cut(const absl::Status& /*why*/) {}
};

// A stream where it is served, for engines: requests that wait, and a thread
// that carries them out, one behind the other.
//
// Behind Close, Cut or Finish it uses neither the threads nor the service any
// more, but for a call under way, which lets go of the service before it ends.
// Thread-safety: thread-safe. Its mutex is not held while ReplyWay or the
//   service are called.
// Cost: a hand-over to a thread where the stream rested.
class ServedStream : public std::enable_shared_from_this<ServedStream> {
 public:
  struct Options {
    std::string method = {};
    std::string peer = {};  // As the service sees the client.
    int64_t window = 1;     // The client's.
    std::shared_ptr<Service> service = nullptr;
    // These may be shared.
    CallThreads* threads = nullptr;
    std::shared_ptr<RunningCalls> calls = nullptr;
  };
  // Held by shared_ptr: its work has it too.
  ServedStream(Options options, std::unique_ptr<ReplyWay> way)
      : method_(std::move(options.method)),
        peer_(std::move(options.peer)),
        window_(options.window),
        threads_(options.threads),
        calls_(std::move(options.calls)),
        way_(std::move(way)),
        service_(std::move(options.service)) {}

  // Behind the others; dropped where the stream has ended. FAILED_PRECONDITION
  // where as many wait as the window: the client does not keep to it.
  absl::Status Push(Request request);
  // The client is gone. Requests that wait are dropped, and a call under way
  // has no reply.
  void Close();
  // The same, and the way is cut.
  void Cut(const absl::Status& why);
  // The server takes no more, and requests that wait are dropped. The way ends
  // at once, or behind the reply to the call under way.
  void Finish(const absl::Status& why);

 private:
  struct Work {
    Request request;
    std::shared_ptr<Service> service;
  };

  void Serve();
  // The thread goes on where requests wait.
  bool HasRequest();
  // False where none waits or calls are closed.
  bool Take(Work* work);
  // The call under way is over; the error to end the way with, where it is to.
  absl::Status EndCall(bool has_reply);
  // No request is taken any more. The caller lets go of the service without
  // the mutex.
  std::shared_ptr<Service> Stop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool is_closed() {
    absl::MutexLock lock(&mu_);
    return is_closed_;
  }

  const std::string method_;
  const std::string peer_;
  const int64_t window_;
  CallThreads* const threads_;
  const std::shared_ptr<RunningCalls> calls_;
  const std::unique_ptr<ReplyWay> way_;
  absl::Mutex mu_;
  // Null where it takes no more.
  std::shared_ptr<Service> service_ ABSL_GUARDED_BY(mu_);
  std::deque<Request> requests_ ABSL_GUARDED_BY(mu_);
  bool has_thread_ ABSL_GUARDED_BY(mu_) = false;  // Or will have.
  bool is_calling_ ABSL_GUARDED_BY(mu_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  // Finish has come, and End is to come behind the call under way.
  absl::Status finished_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_SERVED_STREAM_H_
