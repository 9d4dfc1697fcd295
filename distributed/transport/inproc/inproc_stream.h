// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/reply_window.h"
#include "rill/distributed/transport/running_calls.h"
#include "rill/distributed/transport/transport.h"

namespace rill::inproc_internal {

// Calls of a service, from the threads of its streams.
// Thread-safety: thread-safe.
class ServiceCalls {
 public:
  explicit ServiceCalls(std::shared_ptr<Service> service)
      : service_(std::move(service)) {}

  // Calls the service, and for what is late by now before that. `repeats`:
  // twice, and the first reply counts. UNAVAILABLE behind Close.
  Reply Call(const CallInfo& info, const Message& request, bool repeats);
  // It is called for when `calls` others have begun; never, where these do not
  // come before Close.
  void CallLate(const CallInfo& info, const Message& request, int64_t calls);

  // No call begins any more.
  void Close();
  RunningCalls& running() { return running_; }

 private:
  struct Late {
    std::string method, peer;
    absl::Time deadline;
    Message request;
    int64_t calls;  // Before this one.
  };

  Reply CallNow(const CallInfo& info, const Message& request);

  const std::shared_ptr<Service> service_;
  RunningCalls running_;
  absl::Mutex mu_;
  std::vector<Late> late_ ABSL_GUARDED_BY(mu_);
};

// One stream: what its client and the thread that serves it share.
// Thread-safety: thread-safe.
class InprocStream {
 public:
  struct Options {
    std::shared_ptr<ServiceCalls> calls = nullptr;
    std::string method = {};
    std::string peer = {};  // As the service sees the client.
    int64_t window = 1;
    InprocFaults faults = {};
    uint64_t number = 0;  // Among the engine's.
  };
  explicit InprocStream(Options options)
      : options_(std::move(options)),
        replies_(options_.method, options_.window) {}

  // CallStream's.
  absl::Status Send(const Message& request, absl::Time deadline);
  absl::StatusOr<Reply> Receive(absl::Time deadline) {
    return replies_.Receive(deadline);
  }

  // Carries requests out until the stream ends.
  void Serve();
  // Takes no more requests, and drops those that wait; a reply to the one under
  // way arrives. The first reason counts.
  void End(const absl::Status& why);
  // The same; replies that were not received are lost too.
  void Cut(const absl::Status& why);

 private:
  struct Request {
    Message message;
    absl::Time deadline;
  };

  // Waits for the next request and for as long as its fate says. False where
  // the stream has ended.
  bool Take(uint32_t number, Request* request, InprocFate* fate);
  // False where the stream ends or stalls with it.
  bool CarryOut(const Request& request, const InprocFate& fate);

  const Options options_;
  ReplyWindow replies_;
  absl::Mutex mu_;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mu_);
  bool is_carrying_out_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rill::inproc_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_STREAM_H_
