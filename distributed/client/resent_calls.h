// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_CLIENT_RESENT_CALLS_H_
#define RILL_DISTRIBUTED_CLIENT_RESENT_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// Requests of one method, sent ahead and in order. Where a connection ends, or
// the server could not carry one out, this one and all behind it are sent again
// over a new connection. So a request may be carried out several times: the
// server tells repeats.
// Thread-safety: thread-compatible.
class ResentCalls {
 public:
  // Called in order, once a request: with what came back, OK or an error that
  // is final (transport/final_error.h). `was_sent` is false where the engine
  // cannot carry the request. An error that it returns is a refusal, which one
  // later call gives back.
  using OnReply = std::function<absl::Status(
      const Message& request, const Reply& reply, bool was_sent)>;

  ResentCalls(RemoteServer server, std::string method, int64_t most,
              RetryingStream::Greeting greeting, OnReply on_reply)
      : most_(static_cast<size_t>(most)),
        on_reply_(std::move(on_reply)),
        link_(std::move(server), std::move(method), most, std::move(greeting)) {
  }

  // Waits until fewer than `most` requests have no reply / until none is left.
  // At the deadline the error that stands in the way comes back, and the
  // requests stay. So does an error of connecting that is final, at once. Else
  // the oldest refusal comes back, where there is one.
  absl::Status AwaitRoom(absl::Time deadline) {
    return Await(most_ - 1, deadline);
  }
  absl::Status AwaitReplies(absl::Time deadline) { return Await(0, deadline); }
  // Behind AwaitRoom: queues the request, and sends it where the server can be
  // reached now. Takes replies that are there.
  void Add(Message request);

  int64_t size() const { return static_cast<int64_t>(queue_.size()); }
  int64_t connects() const { return link_.connects(); }

 private:
  struct Call {
    Message request;
    absl::Time reply_due = absl::InfiniteFuture();  // Over this connection.
  };

  absl::Status Await(size_t left, absl::Time deadline);
  absl::Status SendAll();
  // Tells on_reply_, and keeps a refusal.
  void Answer(const Message& request, const Reply& reply, bool was_sent);
  // The reply to the oldest.
  absl::Status TakeReply(absl::Time deadline);
  absl::Status Drop(absl::Status why);

  const size_t most_;
  const OnReply on_reply_;
  RetryingStream link_;
  std::deque<Call> queue_;             // Oldest first.
  size_t sent_ = 0;                    // Of these, over this connection.
  std::deque<absl::Status> refusals_;  // That no call has given back.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_CLIENT_RESENT_CALLS_H_
