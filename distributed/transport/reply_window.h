// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_REPLY_WINDOW_H_
#define RILL_DISTRIBUTED_TRANSPORT_REPLY_WINDOW_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// The client's end of a stream, for engines: how many replies are to come,
// those that came, and the waits of CallStream for both.
//
// Send is AwaitRoom, Sent, and what the engine does to send. Receive is
// Receive. Push and End are what arrives.
// Thread-safety: thread-safe; no method calls out, so any lock may be held
//   around those that do not wait.
// Cost: O(1).
class ReplyWindow {
 public:
  // `who` names the stream in messages, and `server` the other side; "": as who
  // does already.
  ReplyWindow(std::string who, int64_t window, std::string server = "")
      : who_(std::move(who)), server_(std::move(server)), window_(window) {}

  // Until fewer than `window` replies are to be received; the error of the end
  // where there was one. DEADLINE_EXCEEDED as CallStream::Send.
  absl::Status AwaitRoom(absl::Time deadline);
  // A request is on its way, and so one more reply to be received. The error of
  // the end where there was one.
  absl::Status Sent();
  // As CallStream::Receive.
  absl::StatusOr<Reply> Receive(absl::Time deadline);
  // Whether Receive would return at once.
  bool has_news() const;

  // A reply that nobody waits for is dropped.
  void Push(Reply reply);
  // No request goes any more, and no reply comes. Replies that are there may be
  // received. The first reason counts.
  void End(const absl::Status& why);
  // The same; replies that were not received are lost too.
  void Cut(const absl::Status& why);
  // Waits for the end; false where it has not come by then.
  bool AwaitEnd(absl::Duration timeout) const;

 private:
  // A reply, or the end behind the last one.
  bool IsThere() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !replies_.empty() || !ended_.ok();
  }

  const std::string who_;
  const std::string server_;
  const int64_t window_;
  mutable absl::Mutex mu_;
  int64_t unreceived_ ABSL_GUARDED_BY(mu_) = 0;  // Requests.
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_REPLY_WINDOW_H_
