// SPDX-License-Identifier: Apache-2.0
#include "rill/base/process/poll_until.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "rill/base/clock.h"
#include "rill/base/fault_point.h"

namespace rill {

int PollUntil(absl::Span<pollfd> entries, absl::Time deadline) {
  if (!FaultPoint("process.poll", absl::StrCat(entries.size())).ok()) {
    errno = ENOMEM;
    return -1;
  }
  while (true) {
    // Cut to an hour, since poll takes an int of milliseconds and the deadline
    // may be infinite.
    const absl::Duration left = std::clamp(
        deadline - Clock::Steady().Now(), absl::ZeroDuration(), absl::Hours(1));
    // Rounded up: else it would turn round and round before the deadline.
    const int found = poll(entries.data(), entries.size(),
                           static_cast<int>(absl::ToInt64Milliseconds(
                               absl::Ceil(left, absl::Milliseconds(1)))));
    if (found > 0 || (found < 0 && errno != EINTR)) return found;
    if (Clock::Steady().Now() >= deadline) return 0;
  }
}

}  // namespace rill
