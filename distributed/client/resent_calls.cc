// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/client/resent_calls.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/distributed/transport/message.h"

namespace rill {

void ResentCalls::Add(Message request) {
  queue_.push_back({.request = std::move(request)});
  // Await sends those that do not go now.
  if (!link_.Open().ok() || !SendAll().ok()) return;
  while (!queue_.empty() && TakeReply(absl::InfinitePast()).ok()) {
  }
}

absl::Status ResentCalls::Await(size_t left, absl::Time deadline) {
  while (queue_.size() > left) {
    absl::Status status = link_.Open();
    if (status.ok()) status = SendAll();
    if (status.ok() && queue_.size() > left) status = TakeReply(deadline);
    if (status.ok()) continue;
    if (IsFinalError(status) || !link_.AwaitAttempt(deadline)) {
      return absl::Status(
          status.code(),
          absl::StrCat(link_.server().address, ": ", queue_.size(),
                       " requests have no reply: ", status.message()));
    }
  }
  if (refusals_.empty()) return absl::OkStatus();
  absl::Status oldest = std::move(refusals_.front());
  refusals_.pop_front();
  return oldest;
}

void ResentCalls::Answer(const Message& request, const Reply& reply,
                         bool was_sent) {
  absl::Status refusal = on_reply_(request, reply, was_sent);
  if (!refusal.ok()) refusals_.push_back(std::move(refusal));
}

absl::Status ResentCalls::SendAll() {
  const absl::Duration timeout = link_.server().reply_timeout;
  while (sent_ < queue_.size()) {
    const absl::Time now = Clock::System().Now();
    Call& call = queue_[sent_];
    const absl::Status status =
        link_.stream()->Send(call.request, now + timeout);
    if (absl::IsInvalidArgument(status)) {
      const Message refused = std::move(call.request);
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(sent_));
      Answer(refused, {.status = status}, /*was_sent=*/false);
      continue;
    }
    if (!status.ok()) return Drop(status);
    call.reply_due = now + 2 * timeout;
    ++sent_;
  }
  return absl::OkStatus();
}

absl::Status ResentCalls::TakeReply(absl::Time deadline) {
  const absl::Time due = queue_.front().reply_due;
  const absl::StatusOr<Reply> reply =
      link_.stream()->Receive(std::min(deadline, due));
  if (absl::IsDeadlineExceeded(reply.status()) && deadline < due) {
    return reply.status();
  }
  if (!reply.ok()) return Drop(reply.status());
  if (!reply->status.ok() && !IsFinalError(reply->status)) {
    return Drop(reply->status);
  }
  const Message request = std::move(queue_.front().request);
  queue_.pop_front();
  --sent_;
  link_.Worked();
  Answer(request, *reply, /*was_sent=*/true);
  return absl::OkStatus();
}

absl::Status ResentCalls::Drop(absl::Status why) {
  sent_ = 0;
  return link_.Drop(std::move(why));
}

}  // namespace rill
