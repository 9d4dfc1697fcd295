// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_LOG_CLOCK_H_
#define RILL_RECORDER_LOG_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"
#include "rill/base/clock.h"

namespace rill::recorder_internal {

// The time since it was made, for a log of many events a millisecond. Clock::
// Steady is asked once in kTrusted; between two looks the processor's counter
// says what has passed, at the rate that it had before. A counter that jumps or
// changes its rate makes answers wrong for some 10 ms, and one may lie
// before the last. The counter must not stop. Other clocks, and processors
// without such a counter, are asked each time.
//
// Thread-safety: thread-compatible.
// Cost: a third of a look at the clock.
class LogClock {
 public:
  static constexpr absl::Duration kTrusted = absl::Milliseconds(10);

  // `clock` outlives it.
  explicit LogClock(const Clock* clock);

  absl::Duration Now();
  // Now, where the counter stands so; 0 when this was made.
  absl::Duration NowAt(uint64_t counter);

 private:
  // Asks the clock, and learns the counter's rate.
  absl::Duration Look(uint64_t counter);

  const Clock& clock_;
  const bool has_counter_;
  const uint64_t first_count_;
  const absl::Time begin_;
  // At the last look.
  absl::Duration looked_ = absl::ZeroDuration();
  uint64_t counter_ = 0;
  // Nanoseconds a count; counts for which it is trusted, 0 before it is known.
  double rate_ = 0;
  uint64_t trusted_counts_ = 0;
};

}  // namespace rill::recorder_internal

#endif  // RILL_RECORDER_LOG_CLOCK_H_
