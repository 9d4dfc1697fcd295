// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SCHEDULE_H_
#define RILL_SAMPLERS_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/statusor.h"

namespace rill {

// A number that changes over training, such as a prioritized sampler's beta: a
// function of the step, so that there is no state to save. Any lambda is one.
// Those made here give the same bits on every machine.
//
// Thread-safety: those made here are immutable.
//
// Example (ScheduleTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(Schedule beta, LinearSchedule(0.4, 1.0, 1000));
//   RILL_RETURN_IF_ERROR(selector->SetBeta(beta(step)));
using Schedule = std::function<double(int64_t step)>;

// From `first` at step 0 straight to `last` at step `steps` and ever after;
// `first` before step 0. INVALID_ARGUMENT unless steps >= 1 and both finite.
absl::StatusOr<Schedule> LinearSchedule(double first, double last,
                                        int64_t steps);

// `first` changes every `every` steps: times `factor`, or plus `summand`;
// never leaves [min, max].
struct StepScheduleOptions {
  double first = 1.0;
  double factor = 1.0;
  double summand = 0.0;
  int64_t every = 1;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};
// The value at step >= 0 is first * factor^k + summand * k, with k = step /
// every. The power is by squaring, with a relative error up to about k * 2^-53.
// INVALID_ARGUMENT unless every >= 1, min <= max, factor >= 0 and `first`,
// `factor`, `summand` finite.
absl::StatusOr<Schedule> StepSchedule(const StepScheduleOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_SCHEDULE_H_
