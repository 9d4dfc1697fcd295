// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/distributed_dqn/end_service.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {
namespace {

constexpr char kRows[] = "rows";
constexpr absl::Duration kLook = absl::Milliseconds(20);

}  // namespace

void EndService::Done(int64_t rows) {
  rows_ = rows;
  done_.Notify();
}

absl::StatusOr<Message> EndService::Call(const CallInfo& info, const Message&) {
  stop_ = true;
  if (!done_.WaitForNotificationWithDeadline(info.deadline)) {
    return absl::DeadlineExceededError("EndService: the part still runs");
  }
  Message reply;
  reply.values.Set(kRows, rows_.load());
  return reply;
}

absl::StatusOr<int64_t> End(Transport& transport, const std::string& address,
                            absl::Time deadline) {
  auto connection = transport.Connect(address, deadline);
  // Ranks begin in any order.
  while (absl::IsUnavailable(connection.status()) && absl::Now() < deadline) {
    absl::SleepFor(kLook);
    connection = transport.Connect(address, deadline);
  }
  RILL_RETURN_IF_ERROR(connection.status());
  RILL_ASSIGN_OR_RETURN(const Message reply,
                        (*connection)->Call("end", {}, deadline));
  return reply.values.Get<int64_t>(kRows);
}

}  // namespace rill::distributed_dqn
