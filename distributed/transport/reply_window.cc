// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/reply_window.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"

namespace rill {

absl::Status ReplyWindow::AwaitRoom(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto may_go = [this] {
    mu_.AssertReaderHeld();
    return !ended_.ok() || unreceived_ < window_;
  };
  if (!mu_.AwaitWithDeadline(absl::Condition(&may_go), deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("CallStream::Send: ", who_, ": ", unreceived_,
                     " replies are not received, want fewer than ", window_));
  }
  return ended_;
}

absl::Status ReplyWindow::Sent() {
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(ended_);
  ++unreceived_;
  return absl::OkStatus();
}

absl::StatusOr<Reply> ReplyWindow::Receive(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  if (unreceived_ == 0) {
    RILL_RETURN_IF_ERROR(ended_);
    return FailedPrecondition("CallStream::Receive: ", who_,
                              ": all replies are received; send a request");
  }
  const auto is_there = [this] {
    mu_.AssertReaderHeld();
    return IsThere();
  };
  if (!mu_.AwaitWithDeadline(absl::Condition(&is_there), deadline)) {
    std::string text =
        absl::StrCat("CallStream::Receive: ", who_, ": no reply");
    if (!server_.empty()) absl::StrAppend(&text, " from \"", server_, "\"");
    return absl::DeadlineExceededError(text);
  }
  if (replies_.empty()) return ended_;
  Reply reply = std::move(replies_.front());
  replies_.pop_front();
  --unreceived_;
  return reply;
}

bool ReplyWindow::has_news() const {
  absl::MutexLock lock(&mu_);
  return unreceived_ == 0 || IsThere();
}

void ReplyWindow::Push(Reply reply) {
  absl::MutexLock lock(&mu_);
  if (static_cast<int64_t>(replies_.size()) < unreceived_) {
    replies_.push_back(std::move(reply));
  }
}

void ReplyWindow::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
}

void ReplyWindow::Cut(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
  replies_.clear();
  unreceived_ = 0;
}

bool ReplyWindow::AwaitEnd(absl::Duration timeout) const {
  absl::MutexLock lock(&mu_);
  const auto has_ended = [this] {
    mu_.AssertReaderHeld();
    return !ended_.ok();
  };
  return mu_.AwaitWithTimeout(absl::Condition(&has_ended), timeout);
}

}  // namespace rill
