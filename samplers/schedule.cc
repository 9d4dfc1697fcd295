// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/schedule.h"

#include <algorithm>
#include <cmath>

#include "rill/base/status_macros.h"

namespace rill {

namespace {

// The same bits everywhere, which std::pow does not promise.
double Power(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) power *= base;
  }
  return power;
}

}  // namespace

absl::StatusOr<Schedule> LinearSchedule(double first, double last,
                                        int64_t steps) {
  if (steps < 1 || !std::isfinite(first) || !std::isfinite(last)) {
    return InvalidArgument("LinearSchedule: first, last, steps: got ", first,
                           ", ", last, ", ", steps,
                           ", want finite ones and >= 1 step");
  }
  return [first, last, steps](int64_t step) {
    if (step >= steps) return last;
    const double share = static_cast<double>(std::max<int64_t>(step, 0)) /
                         static_cast<double>(steps);
    // Exact at both ends. first + (last - first) * share is not, and its
    // difference may overflow.
    return first * (1 - share) + last * share;
  };
}

absl::StatusOr<Schedule> StepSchedule(const StepScheduleOptions& options) {
  if (options.every < 1 || !(options.min <= options.max) ||
      !(options.factor >= 0) || !std::isfinite(options.first) ||
      !std::isfinite(options.factor) || !std::isfinite(options.summand)) {
    return InvalidArgument(
        "StepSchedule: first, factor, summand, every, min, max: got ",
        options.first, ", ", options.factor, ", ", options.summand, ", ",
        options.every, ", ", options.min, ", ", options.max,
        ", want the first three finite, factor >= 0, every >= 1, min <= max");
  }
  return [options](int64_t step) {
    const int64_t times = std::max<int64_t>(step, 0) / options.every;
    // 0 stays 0, however large the power has become.
    const double product =
        options.first == 0 ? 0 : options.first * Power(options.factor, times);
    const double value = product + options.summand * static_cast<double>(times);
    // Both are infinite and of other signs.
    if (std::isnan(value)) return product > 0 ? options.max : options.min;
    return std::clamp(value, options.min, options.max);
  };
}

}  // namespace rill
