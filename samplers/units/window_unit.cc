// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/window_unit.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/units/rows_unit.h"

namespace rill {
namespace {

using samplers_internal::WindowPlanner;

absl::string_view NameOf(const RowWindows& windows) {
  if (windows.frames == 0) return "NStep";
  return windows.steps == 0 ? "FrameStack" : "FrameStackNStep";
}

UnitTraits TraitsOf(const RowWindows& windows) {
  return {.name = std::string(NameOf(windows)),
          .options = OptionValues()
                         .Int("frames", windows.frames)
                         .Int("steps", windows.steps),
          .layout = WindowPlanner(windows).Extend({})};
}

class WindowUnit final : public samplers_internal::RowsUnit {
 public:
  explicit WindowUnit(const RowWindows& windows)
      : RowsUnit(TraitsOf(windows)), planner_(windows) {}

  absl::StatusOr<int64_t> NumAnchors(int64_t batch_size) const override {
    return planner_.CheckRows(batch_size, 1);
  }
  void Expand(const Rng& rng, uint64_t batch_number,
              SamplePlan* plan) const override;

 private:
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
    return InvalidArgument(
        "MakeWindowUnit: frames and steps: got 0 and 0, want one of them in "
        "use; MakeTransitionUnit plans single rows");
  }
  return std::make_unique<WindowUnit>(windows);
}

}  // namespace rill
