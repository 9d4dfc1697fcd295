// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/log_clock.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rill::recorder_internal {
namespace {

#if defined(__x86_64__)
constexpr bool kHasCounter = true;
uint64_t Counter() { return __rdtsc(); }
#elif defined(__aarch64__)
constexpr bool kHasCounter = true;
uint64_t Counter() {
  uint64_t counter;
  asm volatile("mrs %0, cntvct_el0" : "=r"(counter));
  return counter;
}
#else
constexpr bool kHasCounter = false;
uint64_t Counter() { return 0; }
#endif

// A rate is learned over no less.
constexpr absl::Duration kLearned = absl::Microseconds(100);
constexpr uint64_t kMostCounts = uint64_t{1} << 62;
constexpr double kMostTrusted = 1e8;  // 10 ms at 10 GHz.

}  // namespace

LogClock::LogClock(const Clock* clock)
    : clock_(*clock),
      has_counter_(kHasCounter && clock == &Clock::Steady()),
      first_count_(Counter()),
      begin_(clock->Now()) {}

absl::Duration LogClock::Now() {
  return has_counter_ ? NowAt(Counter() - first_count_) : clock_.Now() - begin_;
}

absl::Duration LogClock::NowAt(uint64_t counter) {
  // A counter that went back has passed nearly 2^64.
  const uint64_t passed = counter - counter_;
  if (passed >= trusted_counts_) return Look(counter);
  return looked_ + absl::Nanoseconds(static_cast<int64_t>(
                       static_cast<double>(passed) * rate_));
}

absl::Duration LogClock::Look(uint64_t counter) {
  const absl::Duration now = clock_.Now() - begin_;
  const absl::Duration since = now - looked_;
  const uint64_t passed = counter - counter_;
  if (since < kLearned) return now;
  // One that stood still, or went back, has no rate.
  if (passed == 0 || passed > kMostCounts) {
    trusted_counts_ = 0;
  } else {
    rate_ = absl::ToDoubleNanoseconds(since) / static_cast<double>(passed);
    // After a jump the rate says too little, and would be trusted for long.
    trusted_counts_ = static_cast<uint64_t>(
        std::min(absl::ToDoubleNanoseconds(kTrusted) / rate_, kMostTrusted));
  }
  looked_ = now;
  counter_ = counter;
  return now;
}

}  // namespace rill::recorder_internal
