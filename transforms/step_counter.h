// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEP_COUNTER_H_
#define RILL_TRANSFORMS_STEP_COUNTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Counts the steps of each lane's episode beside an environment: the root's
// count is 0 after a reset, next's is the root's + 1. With max_steps it ends
// an episode that has run so long: next/truncated and next/done become true
// (next/terminated stays, so both may be). TorchRL's StepCounter.
//
// Shapes: `step_count` int64 [lanes, 1] at the root and below next; the flags
//   bool [lanes, 1].
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; the count is in the data.
//
// Example (StepCounterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto counter,
//                         StepCounter::Create({.max_steps = 500}));
class StepCounter {
 public:
  struct Options {
    std::optional<int64_t> max_steps = std::nullopt;  // > 0; none: only counts.
    std::string step_count_key = "step_count";
    std::string truncated_key = "truncated";  // Below next.
    std::string done_key = "done";            // Below next.
    bool update_done = true;                  // false: only truncated is set.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STEP_COUNTER_H_
