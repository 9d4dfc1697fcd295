// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_PHASE_TIMES_H_
#define RILL_TELEMETRY_PHASE_TIMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"

namespace rill {

// Seconds of one part of a program.
struct PhaseTime {
  absl::string_view name;
  double seconds = 0;
};

// A table of phases, seconds and shares of the total, one line each. The line
// "other" is the part of the total that no phase accounts for; "total" is last.
//
// Example (PhaseTimesTest.Example runs it):
//   double learn = 0;
//   {
//     PhaseTimer timer(Clock::Steady(), &learn);
//     // Work.
//   }
//   std::string table = FormatPhaseTimes({{"learn", learn}}, total_seconds);
std::string FormatPhaseTimes(absl::Span<const PhaseTime> phases,
                             double total_seconds);

// Adds the time of its own life to `seconds`. Both pointees must outlive it.
// Thread-safety: thread-compatible.
class PhaseTimer {
 public:
  PhaseTimer(const Clock& clock, double* seconds)
      : clock_(clock), seconds_(seconds), start_(clock.Now()) {}
  ~PhaseTimer() { *seconds_ += absl::ToDoubleSeconds(clock_.Now() - start_); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  const Clock& clock_;
  double* seconds_;
  absl::Time start_;
};

}  // namespace rill

#endif  // RILL_TELEMETRY_PHASE_TIMES_H_
