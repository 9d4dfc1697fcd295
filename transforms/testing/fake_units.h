// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TESTING_FAKE_UNITS_H_
#define RILL_TRANSFORMS_TESTING_FAKE_UNITS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"

namespace rill {

// Plain versions of the plans of samplers' units, over one lane whose step i is
// slot i. ends[i] says that a trajectory ends with step i (the last one always
// does). Anchors are slots, one a draw, and lie inside.
// Thread-safety: immutable.
class FakeUnits {
 public:
  explicit FakeUnits(std::vector<bool> ends) : ends_(std::move(ends)) {}

  // `size` steps in trajectories of seven, of which the first has three.
  static FakeUnits OfSevens(int64_t size);

  // One row a draw, no context.
  SamplePlan Transitions(const std::vector<Slot>& anchors) const;
  // context[0] the rows behind, context[1] the last row of the window.
  SamplePlan NSteps(const std::vector<Slot>& anchors, int64_t n) const;
  // context[0] the num_frames - 1 rows before, mask 0 where there was none.
  SamplePlan Frames(const std::vector<Slot>& anchors, int64_t num_frames) const;
  // Rows from each anchor on, up to `length`; padded to it by `pad`.
  SamplePlan Slices(const std::vector<Slot>& anchors, int64_t length,
                    bool pad) const;
  // burn_in rows before each anchor and `length` from it on, padded on both
  // sides.
  SamplePlan Sequences(const std::vector<Slot>& anchors, int64_t burn_in,
                       int64_t length) const;
  // `plan`, of one of the above without context, with the lists of these
  // windows (slots/plan_layout.h), as samplers/units/row_windows.h describes
  // them.
  struct Windows {
    int64_t frames = 0;
    int64_t steps = 0;
  };
  SamplePlan WithWindows(SamplePlan plan, const Windows& windows) const;
  // goals[i] is the row of the new goal of draw i, -1 where it keeps its own.
  SamplePlan Goals(const std::vector<Slot>& anchors,
                   const std::vector<Slot>& goals) const;

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  Slot First(Slot slot) const;  // Of the slot's trajectory.
  Slot Last(Slot slot) const;

 private:
  const std::vector<bool> ends_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_TESTING_FAKE_UNITS_H_
