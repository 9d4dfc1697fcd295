// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_scaling.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

absl::Status BadNumber(absl::string_view option, double got,
                       absl::string_view want) {
  return InvalidArgument("RewardScaling::Create: ", option, ": got ", got,
                         ", want ", want);
}

}  // namespace

// The last two are constant: saves of the time when they were options compare
// them.
OptionValues RewardScaling::option_values() const {
  // The step has the options as they were given, not rounded: checkpoints
  // compare these.
  const RowStep& step = rows().map->steps()[0];
  return OptionValues()
      .Double("scale", step.scale[0])
      .Double("loc", step.loc[0])
      .Bool("standard_normal", step.kind == RowStep::Kind::kShiftThenDivide)
      .Text("key", rows().in_keys[0])
      .Bool("on_forward", true)
      .Bool("on_step", true);
}

absl::StatusOr<std::unique_ptr<RewardScaling>> RewardScaling::Create(
    const Options& options) {
  // The kernel divides or multiplies by the float32, so a scale that float32
  // rounds to 0 or to infinity is refused too.
  const float scale = static_cast<float>(options.scale);
  if (!std::isfinite(scale) || scale == 0) {
    return BadNumber("scale", options.scale, "a finite float32 other than 0");
  }
  if (!std::isfinite(static_cast<float>(options.loc))) {
    return BadNumber("loc", options.loc, "a finite float32");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.key)) << "RewardScaling::Create: key";
  RILL_ASSIGN_OR_RETURN(
      auto map, MakeRowStep({.kind = options.standard_normal
                                         ? RowStep::Kind::kShiftThenDivide
                                         : RowStep::Kind::kScaleThenShift,
                             .scale = {options.scale},
                             .loc = {options.loc}}));
  return absl::WrapUnique(
      new RewardScaling({.map = std::move(map), .in_keys = {options.key}}));
}

}  // namespace rill
