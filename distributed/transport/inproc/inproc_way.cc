// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_way.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::inproc_internal {

void LateCalls::Add(const CallInfo& info, const Message& request,
                    int64_t calls) {
  absl::MutexLock lock(&mu_);
  if (is_closed_) return;
  late_.push_back({.method = std::string(info.method),
                   .peer = std::string(info.peer),
                   .deadline = info.deadline,
                   .request = request,
                   .calls = calls});
}

void LateCalls::CarryOutDue(Service& service) {
  std::vector<Late> due;
  {
    absl::MutexLock lock(&mu_);
    for (Late& one : late_) --one.calls;
    const auto first =
        std::stable_partition(late_.begin(), late_.end(),
                              [](const Late& one) { return one.calls > 0; });
    due.assign(std::make_move_iterator(first),
               std::make_move_iterator(late_.end()));
    late_.erase(first, late_.end());
  }
  for (const Late& late : due) {
    CallByDeadline(
        service,
        {.method = late.method, .peer = late.peer, .deadline = late.deadline},
        late.request)
        .IgnoreError();
  }
}

void LateCalls::Close() {
  std::vector<Late> late;  // Goes without the mutex.
  absl::MutexLock lock(&mu_);
  is_closed_ = true;
  late.swap(late_);
}

void InprocWay::Await() { parts_.replies->AwaitEnd(NextFate().delay); }

std::optional<absl::StatusOr<Message>> InprocWay::Call(Service& service,
                                                       const CallInfo& info,
                                                       const Message& request) {
  const InprocFate fate = NextFate();
  ++requests_;
  if (fate.fault == InprocFault::kStall) return std::nullopt;
  if (fate.fault == InprocFault::kLate) {
    parts_.late->Add(info, request, fate.calls_late);
  }
  std::optional<absl::StatusOr<Message>> reply;
  if (fate.fault != InprocFault::kLoseRequest &&
      fate.fault != InprocFault::kLate) {
    parts_.late->CarryOutDue(service);
    reply = CallByDeadline(service, info, request);
    if (fate.fault == InprocFault::kRepeat) {
      CallByDeadline(service, info, request).IgnoreError();
    }
    if (fate.fault != InprocFault::kLoseReply) return reply;
  }
  End(Unavailable("InprocTransport: \"", parts_.server,
                  "\": the connection was lost"));
  return std::nullopt;
}

void InprocWay::Reply(absl::StatusOr<Message> reply) {
  rill::Reply pushed = {.status = reply.status()};
  if (reply.ok()) pushed.message = *std::move(reply);
  parts_.replies->Push(std::move(pushed));
}

}  // namespace rill::inproc_internal
