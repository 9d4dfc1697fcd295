// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/window_unit.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/units/rows_unit.h"
#include "rill/slots/plan_layout.h"

namespace rill {
namespace {

using samplers_internal::WindowPlanner;

class WindowUnit final : public samplers_internal::RowsUnit {
 public:
  explicit WindowUnit(const RowWindows& windows)
      : windows_(windows), planner_(windows) {}

  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    return planner_.CheckRows(batch_size, 1);
  }
  PlanLayout layout() const override { return planner_.Extend({}); }
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;
  OptionValues option_values() const override {
    return OptionValues()
        .Int("frames", windows_.frames)
        .Int("steps", windows_.steps);
  }
  absl::string_view name() const override {
    if (windows_.frames == 0) return "NStep";
    return windows_.steps == 0 ? "FrameStack" : "FrameStackNStep";
  }

 private:
  const RowWindows windows_;
  const WindowPlanner planner_;
};

void WindowUnit::Expand(const Rng& /*rng*/, uint64_t /*batch_number*/,
                        SamplePlan* plan) const {
  for (size_t i = 0; i < plan->draws.size(); ++i) {
    // Every anchor is a live row, so it has a place.
    const TrajectoryIndex::Place place = *index().Find(plan->draws[i].slot);
    planner_.Append(
        index(),
        {.trajectory = place.trajectory, .offset = place.offset, .count = 1}, i,
        plan);
  }
  planner_.Finish(plan);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Unit>> MakeWindowUnit(
    const RowWindows& windows) {
  RILL_RETURN_IF_ERROR(WindowPlanner::Check("MakeWindowUnit", windows));
  if (windows.is_empty()) {
    return absl::InvalidArgumentError(
        "MakeWindowUnit: frames and steps: got 0 and 0, want one of them in "
        "use; MakeTransitionUnit plans single rows");
  }
  return std::make_unique<WindowUnit>(windows);
}

}  // namespace rill
