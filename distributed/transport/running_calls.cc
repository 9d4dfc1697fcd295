// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/running_calls.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace rill {

bool RunningCalls::Begin() {
  absl::MutexLock lock(&mu_);
  if (!is_closed_) ++running_;
  return !is_closed_;
}

void RunningCalls::End() {
  absl::MutexLock lock(&mu_);
  --running_;
}

void RunningCalls::Close() {
  absl::MutexLock lock(&mu_);
  is_closed_ = true;
}

absl::Status RunningCalls::Await(absl::string_view address,
                                 absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto is_idle = [this] {
    mu_.AssertReaderHeld();
    return running_ == 0;
  };
  if (mu_.AwaitWithDeadline(absl::Condition(&is_idle), deadline)) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "Server::Shutdown: \"", address, "\": ", running_, " calls still run"));
}

}  // namespace rill
