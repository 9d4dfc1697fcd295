// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/conformance/held_service.h"

#include <cstdint>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

absl::StatusOr<Message> HeldService::Call(const CallInfo& info,
                                          const Message& request) {
  absl::MutexLock lock(&mu_);
  ++begun_;
  last_method_ = std::string(info.method);
  last_peer_ = std::string(info.peer);
  last_deadline_ = info.deadline;
  if (info.method == "echo") return request;
  if (info.method == "fail") {
    RILL_ASSIGN_OR_RETURN(const auto code, request.values.Get<int64_t>("code"));
    RILL_ASSIGN_OR_RETURN(const auto text,
                          request.values.Get<std::string>("text"));
    return absl::Status(static_cast<absl::StatusCode>(code), text);
  }
  if (info.method == "throw") throw std::runtime_error("thrown");
  if (info.method == "hold") {
    const auto is_released = [this] {
      mu_.AssertReaderHeld();
      return released_ > 0;
    };
    if (!mu_.AwaitWithDeadline(absl::Condition(&is_released), info.deadline)) {
      return absl::DeadlineExceededError("hold: not released");
    }
    --released_;
    return request;
  }
  return absl::UnimplementedError("want echo, fail, throw or hold");
}

void HeldService::Release(int64_t count) {
  absl::MutexLock lock(&mu_);
  released_ += count;
}

bool HeldService::AwaitBegun(int64_t count) {
  absl::MutexLock lock(&mu_);
  const auto is_begun = [&] {
    mu_.AssertReaderHeld();
    return begun_ >= count;
  };
  return mu_.AwaitWithTimeout(absl::Condition(&is_begun), absl::Minutes(1));
}

int64_t HeldService::begun() const {
  absl::MutexLock lock(&mu_);
  return begun_;
}

std::string HeldService::last_method() const {
  absl::MutexLock lock(&mu_);
  return last_method_;
}

std::string HeldService::last_peer() const {
  absl::MutexLock lock(&mu_);
  return last_peer_;
}

absl::Time HeldService::last_deadline() const {
  absl::MutexLock lock(&mu_);
  return last_deadline_;
}

}  // namespace rill
