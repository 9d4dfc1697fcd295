// SPDX-License-Identifier: Apache-2.0
#include "rill/base/clock.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rill {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace

const Clock& Clock::System() {
  static const Clock* const clock = new SystemClock;
  return *clock;
}

}  // namespace rill
