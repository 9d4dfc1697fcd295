// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/testing/fake_units.h"

#include <algorithm>
#include <cstddef>

namespace rill {
namespace {

// Only what is padding is masked.
void DropMaskOfOnes(std::vector<uint8_t>* mask) {
  if (std::find(mask->begin(), mask->end(), 0) == mask->end()) mask->clear();
}

}  // namespace

Slot FakeUnits::First(Slot slot) const {
  while (slot > 0 && !ends_[static_cast<size_t>(slot - 1)]) --slot;
  return slot;
}

Slot FakeUnits::Last(Slot slot) const {
  while (slot + 1 < size() && !ends_[static_cast<size_t>(slot)]) ++slot;
  return slot;
}

SamplePlan FakeUnits::Transitions(const std::vector<Slot>& anchors) const {
  SamplePlan plan;
  for (const Slot anchor : anchors) plan.draws.push_back({.slot = anchor});
  return plan;
}

SamplePlan FakeUnits::NSteps(const std::vector<Slot>& anchors,
                             int64_t n) const {
  SamplePlan plan = Transitions(anchors);
  plan.context.resize(2);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const Slot last = std::min(Last(anchors[i]), anchors[i] + n - 1);
    for (Slot slot = anchors[i] + 1; slot <= last; ++slot) {
      plan.context[0].rows.push_back(slot);
      plan.context[0].segments.push_back(static_cast<int64_t>(i));
    }
    plan.context[1].rows.push_back(last);
    plan.context[1].segments.push_back(static_cast<int64_t>(i));
  }
  return plan;
}

SamplePlan FakeUnits::Frames(const std::vector<Slot>& anchors,
                             int64_t num_frames) const {
  SamplePlan plan = Transitions(anchors);
  plan.context.resize(1);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const Slot first = First(anchors[i]);
    for (int64_t back = num_frames - 1; back > 0; --back) {
      const Slot slot = anchors[i] - back;
      plan.context[0].rows.push_back(std::max(slot, first));
      plan.context[0].segments.push_back(static_cast<int64_t>(i));
      plan.context[0].mask.push_back(slot >= first);
    }
  }
  DropMaskOfOnes(&plan.context[0].mask);
  return plan;
}

SamplePlan FakeUnits::Slices(const std::vector<Slot>& anchors, int64_t length,
                             bool pad) const {
  SamplePlan plan = Transitions(anchors);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const Slot last = Last(anchors[i]);
    for (Slot slot = anchors[i]; slot < anchors[i] + length; ++slot) {
      if (slot > last && !pad) break;
      plan.rows.push_back(std::min(slot, last));
      plan.segments.push_back(static_cast<int64_t>(i));
      plan.generations.push_back(0);
      plan.mask.push_back(slot <= last);
    }
  }
  DropMaskOfOnes(&plan.mask);
  return plan;
}

SamplePlan FakeUnits::Sequences(const std::vector<Slot>& anchors,
                                int64_t burn_in, int64_t length) const {
  SamplePlan plan = Transitions(anchors);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const Slot first = First(anchors[i]);
    const Slot last = Last(anchors[i]);
    for (int64_t step = -burn_in; step < length; ++step) {
      const Slot slot = anchors[i] + step;
      plan.rows.push_back(std::clamp(slot, first, last));
      plan.segments.push_back(static_cast<int64_t>(i));
      plan.generations.push_back(0);
      plan.mask.push_back(first <= slot && slot <= last);
    }
  }
  DropMaskOfOnes(&plan.mask);
  return plan;
}

SamplePlan FakeUnits::Goals(const std::vector<Slot>& anchors,
                            const std::vector<Slot>& goals) const {
  SamplePlan plan = Transitions(anchors);
  plan.context.resize(1);
  for (size_t i = 0; i < goals.size(); ++i) {
    if (goals[i] < 0) continue;
    plan.context[0].rows.push_back(goals[i]);
    plan.context[0].segments.push_back(static_cast<int64_t>(i));
  }
  return plan;
}

}  // namespace rill
