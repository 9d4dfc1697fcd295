// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/transport.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"

namespace rill {

absl::StatusOr<Message> CallByDeadline(Service& service, const CallInfo& info,
                                       const Message& request) {
  if (info.deadline < Clock::System().Now()) {
    return absl::DeadlineExceededError(
        absl::StrCat(info.method, ": the deadline passed before the call"));
  }
  return CatchExceptions([&] { return service.Call(info, request); },
                         info.method);
}

absl::Status CheckService(absl::string_view caller,
                          const std::shared_ptr<Service>& service) {
  if (service != nullptr) return absl::OkStatus();
  return InvalidArgument(caller, ": service is null");
}

absl::Status CheckWindow(int64_t window) {
  if (window >= 1) return absl::OkStatus();
  return InvalidArgument("Connection::Open: window: got ", window,
                         ", want >= 1");
}

absl::StatusOr<Message> Connection::Call(absl::string_view method,
                                         const Message& request,
                                         absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<CallStream> stream,
                        Open(method, {.window = 1}, deadline));
  RILL_RETURN_IF_ERROR(stream->Send(request, deadline));
  RILL_ASSIGN_OR_RETURN(Reply reply, stream->Receive(deadline));
  RILL_RETURN_IF_ERROR(reply.status);
  return std::move(reply.message);
}

}  // namespace rill
