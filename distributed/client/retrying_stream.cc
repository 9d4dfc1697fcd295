// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/client/retrying_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/transport.h"

namespace rill {
namespace {

constexpr absl::Duration kFirstWait = absl::Milliseconds(1);
constexpr absl::Duration kLongestWait = absl::Milliseconds(100);

}  // namespace

absl::Status CheckRemoteServer(const std::string& caller,
                               const RemoteServer& server) {
  if (server.transport == nullptr) {
    return InvalidArgument(caller, ": transport: got null, want an engine");
  }
  for (const auto& [name, value] :
       {std::pair("reply_timeout", server.reply_timeout),
        std::pair("timeout", server.timeout)}) {
    if (value <= absl::ZeroDuration()) {
      return InvalidArgument(caller, ": ", name, ": got ",
                             absl::FormatDuration(value), ", want > 0");
    }
  }
  return absl::OkStatus();
}

absl::Status RetryingStream::Open() {
  if (stream_ != nullptr) return absl::OkStatus();
  if (Clock::System().Now() < next_attempt_) return last_error_;
  const absl::Time start = Clock::System().Now();
  absl::Status status = Connect(start + server_.reply_timeout);
  if (!status.ok()) {
    Drop(std::move(status)).IgnoreError();
    // An attempt that took long is not made all the time.
    const absl::Time now = Clock::System().Now();
    next_attempt_ = std::max(next_attempt_, now + (now - start));
    return last_error_;
  }
  ++connects_;
  return absl::OkStatus();
}

absl::Status RetryingStream::Connect(absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(connection_,
                        server_.transport->Connect(server_.address, deadline));
  RILL_RETURN_IF_ERROR(greeting_(*connection_, deadline));
  RILL_ASSIGN_OR_RETURN(
      stream_, connection_->Open(method_, {.window = window_}, deadline));
  return absl::OkStatus();
}

void RetryingStream::Reset() {
  stream_ = nullptr;
  connection_ = nullptr;
}

absl::Status RetryingStream::Drop(absl::Status why) {
  Reset();
  wait_ = std::clamp(2 * wait_, kFirstWait, kLongestWait);
  next_attempt_ = Clock::System().Now() + wait_;
  last_error_ = std::move(why);
  return last_error_;
}

bool RetryingStream::AwaitAttempt(absl::Time deadline) {
  absl::SleepFor(std::min(next_attempt_, deadline) - Clock::System().Now());
  return Clock::System().Now() < deadline;
}

}  // namespace rill
