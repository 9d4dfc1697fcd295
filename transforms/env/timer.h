// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_TIMER_H_
#define RILL_TRANSFORMS_ENV_TIMER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/base/clock.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// How long an environment and its policy take, in seconds, as leaves of steps.
// TorchRL's Timer. With time_key "time":
// - next/time_step: from the choice of the action to the end of the step.
// - next/time_policy: from the end of the step or reset before to the choice.
// - next/time_reset: 0.
// - time_reset after a reset: from the end of the step before it to its end,
//   and 0 for the first. The other two are 0 there. TorchRL's is the time of the
//   reset alone; this one also holds what the caller did since the step.
// All lanes of a call have one time. It ends where this transform has its turn:
// as the last transform it times those before it too.
//
// Where a saved state is loaded the time since the save counts. A clock that
// was set back gives 0.
//
// Shapes: float32 [lanes, 1] at the root and below next.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; the clock's.
//
// Example (TimerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto timer, Timer::Create({.time_key = "seconds"}));
class Timer {
 public:
  struct Options {
    std::string time_key = "time";  // The leaves' names start with it.
    // Must outlive the transform.
    const Clock* clock = &Clock::System();
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ENV_TIMER_H_
