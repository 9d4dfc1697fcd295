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
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::inproc_internal {

Reply ServiceCalls::CallNow(const CallInfo& info, const Message& request) {
  absl::StatusOr<Message> message = CallByDeadline(*service_, info, request);
  if (!message.ok()) return {.status = std::move(message).status()};
  return {.message = *std::move(message)};
}

Reply ServiceCalls::Call(const CallInfo& info, const Message& request,
                         bool repeats) {
  std::vector<Late> due;
  if (!running_.Begin()) return {.status = Unavailable("the server has ended")};
  {
    absl::MutexLock lock(&mu_);
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
  running_.End();
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
  running_.Close();
  absl::MutexLock lock(&mu_);
  late_.clear();
}

absl::Status InprocStream::Send(const Message& request, absl::Time deadline) {
  RILL_RETURN_IF_ERROR(replies_.AwaitRoom(deadline));
  absl::MutexLock lock(&mu_);
  RILL_RETURN_IF_ERROR(replies_.Sent());
  requests_.push_back({.message = request, .deadline = deadline});
  return absl::OkStatus();
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
  const auto is_there = [this] {
    mu_.AssertReaderHeld();
    return has_ended_ || !requests_.empty();
  };
  mu_.Await(absl::Condition(&is_there));
  if (has_ended_) return false;
  *fate = DrawInprocFate(options_.faults, options_.number, number);
  if (mu_.AwaitWithTimeout(absl::Condition(&has_ended_), fate->delay)) {
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
  Reply reply = options_.calls->Call(info, request.message,
                                     fate.fault == InprocFault::kRepeat);
  absl::MutexLock lock(&mu_);
  is_carrying_out_ = false;
  replies_.Push(std::move(reply));
  return true;
}

void InprocStream::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  replies_.End(why, /*awaits_last=*/is_carrying_out_);
  has_ended_ = true;
  requests_.clear();
}

void InprocStream::Cut(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  replies_.Cut(why);
  has_ended_ = true;
  requests_.clear();
}

}  // namespace rill::inproc_internal
