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

FakeUnits FakeUnits::OfSevens(int64_t size) {
  std::vector<bool> ends(static_cast<size_t>(size));
  for (size_t i = 2; i < ends.size(); i += 7) ends[i] = true;
  return FakeUnits(std::move(ends));
}

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

SamplePlan FakeUnits::WithWindows(SamplePlan plan,
                                  const Windows& windows) const {
  SamplePlan::Context before, behind, ends;
  const auto add = [](Slot slot, int64_t draw, SamplePlan::Context* list) {
    list->rows.push_back(slot);
    list->segments.push_back(draw);
  };
  std::vector<std::vector<Slot>> real(plan.draws.size());
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    if (plan.rows.empty()) real[i] = {plan.draws[i].slot};
  }
  for (size_t k = 0; k < plan.rows.size(); ++k) {
    if (!plan.mask.empty() && plan.mask[k] == 0) continue;
    real[static_cast<size_t>(plan.segments[k])].push_back(plan.rows[k]);
  }
  for (size_t i = 0; i < real.size(); ++i) {
    const int64_t draw = static_cast<int64_t>(i);
    for (int64_t back = windows.frames - 1; back > 0; --back) {
      const Slot slot = real[i].front() - back;
      add(std::max(slot, First(real[i].front())), draw, &before);
      before.mask.push_back(slot >= First(real[i].front()) ? 1 : 0);
    }
    for (int64_t k = 1; k < windows.steps; ++k) {
      const Slot slot = real[i].back() + k;
      if (slot <= Last(real[i].back())) add(slot, draw, &behind);
    }
  }
  const size_t rows = plan.rows.empty() ? plan.draws.size() : plan.rows.size();
  for (size_t k = 0; k < rows; ++k) {
    const Slot slot = plan.rows.empty() ? plan.draws[k].slot : plan.rows[k];
    add(std::min(slot + windows.steps - 1, Last(slot)),
        plan.rows.empty() ? static_cast<int64_t>(k) : plan.segments[k], &ends);
  }
  DropMaskOfOnes(&before.mask);
  if (windows.frames > 0) plan.context.push_back(before);
  if (windows.steps > 0) {
    plan.context.push_back(behind);
    plan.context.push_back(ends);
  }
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
