// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_stream.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::inproc_internal {

Reply ServiceCalls::CallNow(const CallInfo& info, const Message& request) {
  absl::StatusOr<Message> message = service_->Call(info, request);
  if (!message.ok()) return {.status = std::move(message).status()};
  return {.message = *std::move(message)};
}

Reply ServiceCalls::Call(const CallInfo& info, const Message& request,
                         bool repeats) {
  std::vector<Late> due;
  {
    absl::MutexLock lock(&mu_);
    if (is_closed_) {
      return {.status = Unavailable("the server has ended")};
    }
    ++running_;
    for (size_t i = 0; i < late_.size();) {
      if (--late_[i].calls > 0) {
        ++i;
        continue;
      }
      due.push_back(std::move(late_[i]));
      late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const Late& late : due) {
    CallNow(
        {.method = late.method, .peer = late.peer, .deadline = late.deadline},
        late.request);
  }
  Reply reply = CallNow(info, request);
  if (repeats) CallNow(info, request);
  absl::MutexLock lock(&mu_);
  --running_;
  return reply;
}

void ServiceCalls::CallLate(const CallInfo& info, const Message& request,
                            int64_t calls) {
  absl::MutexLock lock(&mu_);
  late_.push_back({.method = std::string(info.method),
                   .peer = std::string(info.peer),
                   .deadline = info.deadline,
                   .request = request,
                   .calls = calls});
}

void ServiceCalls::Close() {
  absl::MutexLock lock(&mu_);
  is_closed_ = true;
  late_.clear();
}

bool ServiceCalls::Await(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto is_idle = [this] {
    mu_.AssertReaderHeld();
    return running_ == 0;
  };
  return mu_.AwaitWithDeadline(absl::Condition(&is_idle), deadline);
}

absl::Status InprocStream::Send(const Message& request, absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto may_go = [this] {
    mu_.AssertReaderHeld();
    return !ended_.ok() || unreceived_ < options_.window;
  };
  if (!mu_.AwaitWithDeadline(absl::Condition(&may_go), deadline)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "CallStream::Send: ", options_.method, ": ", unreceived_,
        " replies are not received, want fewer than ", options_.window));
  }
  RILL_RETURN_IF_ERROR(ended_);
  requests_.push_back({.message = request, .deadline = deadline});
  ++unreceived_;
  return absl::OkStatus();
}

absl::StatusOr<Reply> InprocStream::Receive(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  if (unreceived_ == 0) {
    RILL_RETURN_IF_ERROR(ended_);
    return FailedPrecondition("CallStream::Receive: ", options_.method,
                              ": all replies are received; send a request");
  }
  // Behind End the reply to the request under way is still to come.
  const auto is_there = [this] {
    mu_.AssertReaderHeld();
    return !replies_.empty() || (!ended_.ok() && !is_carrying_out_);
  };
  if (!mu_.AwaitWithDeadline(absl::Condition(&is_there), deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat("CallStream::Receive: ", options_.method, ": no reply"));
  }
  if (replies_.empty()) return ended_;
  Reply reply = std::move(replies_.front());
  replies_.pop_front();
  --unreceived_;
  return reply;
}

void InprocStream::Serve() {
  for (uint32_t number = 0;; ++number) {
    Request request;
    InprocFate fate;
    if (!Take(number, &request, &fate)) return;
    if (!CarryOut(request, fate)) return;
  }
}

bool InprocStream::Take(uint32_t number, Request* request, InprocFate* fate) {
  absl::MutexLock lock(&mu_);
  const auto has_ended = [this] {
    mu_.AssertReaderHeld();
    return !ended_.ok();
  };
  const auto is_there = [this] {
    mu_.AssertReaderHeld();
    return !ended_.ok() || !requests_.empty();
  };
  mu_.Await(absl::Condition(&is_there));
  if (!ended_.ok()) return false;
  *fate = DrawInprocFate(options_.faults, options_.number, number);
  if (mu_.AwaitWithTimeout(absl::Condition(&has_ended), fate->delay)) {
    return false;
  }
  *request = std::move(requests_.front());
  requests_.pop_front();
  is_carrying_out_ =
      fate->fault == InprocFault::kNone || fate->fault == InprocFault::kRepeat;
  return true;
}

bool InprocStream::CarryOut(const Request& request, const InprocFate& fate) {
  const CallInfo info = {.method = options_.method,
                         .peer = options_.peer,
                         .deadline = request.deadline};
  const absl::Status lost = Unavailable("the connection was lost");
  switch (fate.fault) {
    case InprocFault::kLoseRequest:
      End(lost);
      return false;
    case InprocFault::kStall:
      return false;
    case InprocFault::kLate:
      options_.calls->CallLate(info, request.message, fate.calls_late);
      End(lost);
      return false;
    case InprocFault::kLoseReply:
      options_.calls->Call(info, request.message, /*repeats=*/false);
      End(lost);
      return false;
    case InprocFault::kNone:
    case InprocFault::kRepeat:
      break;
  }
  if (request.deadline < Clock::System().Now()) {
    Answer({.status = absl::DeadlineExceededError(absl::StrCat(
                options_.method, ": the deadline passed before the call"))});
  } else {
    Answer(options_.calls->Call(info, request.message,
                                fate.fault == InprocFault::kRepeat));
  }
  return true;
}

void InprocStream::Answer(Reply reply) {
  absl::MutexLock lock(&mu_);
  is_carrying_out_ = false;
  if (!is_cut_) replies_.push_back(std::move(reply));
}

void InprocStream::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
  requests_.clear();
}

void InprocStream::Cut(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
  is_cut_ = true;
  is_carrying_out_ = false;
  requests_.clear();
  replies_.clear();
}

}  // namespace rill::inproc_internal
