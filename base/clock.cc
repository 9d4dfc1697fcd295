// SPDX-License-Identifier: Apache-2.0
#include "rill/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rill {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override {
    // The epoch stands for the clock's own origin: differences of two readings
    // mean something, a reading alone does not.
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::TimeFromTimespec(now);
  }
};

}  // namespace

const Clock& Clock::Steady() {
  // Never destroyed: threads that outlive main may still ask for the time.
  static const Clock* const clock = new SteadyClock;
  return *clock;
}

const Clock& Clock::System() {
  static const Clock* const clock = new SystemClock;
  return *clock;
}

}  // namespace rill
