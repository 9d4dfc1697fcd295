// SPDX-License-Identifier: Apache-2.0
// The priority of rows that come without one, NewRowPriority::kMaxInBuffer.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using UnitMaker = std::unique_ptr<Unit> (*)();

std::unique_ptr<Unit> SlicesOfThree() { return *MakeSliceUnit({.length = 3}); }

// The selector under test, and which rows may be drawn.
class Spy final : public Selector {
 public:
  Spy(std::set<Slot>* drawable, PrioritizedSelector** selector)
      : Selector({.name = "Spy"}),
        inner_(*PrioritizedSelector::Create(
            {.new_rows = NewRowPriority::kMaxInBuffer})),
        drawable_(drawable) {
    *selector = inner_.get();
  }

  absl::Status Prepare(const Request& request,
                       const Anchors& anchors) override {
    return inner_->Prepare(request, anchors);
  }
  void Select(const Request& request, const Anchors& anchors,
              std::vector<Draw>* draws) override {
    inner_->Select(request, anchors, draws);
  }
  void UpdatePriorities(absl::Span<const Draw> draws,
                        absl::Span<const float> priorities,
                        const samplers_internal::LiveRows& rows) override {
    inner_->UpdatePriorities(draws, priorities, rows);
  }
  absl::Status SaveState(SavedState* state) const override {
    return inner_->SaveState(state);
  }
  absl::Status LoadState(const SavedState& state,
                         const LoadOptions& options) override {
    return inner_->LoadState(state, options);
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    inner_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { inner_->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { inner_->OnWrite(event); }
  void OnClear() override { inner_->OnClear(); }
  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    inner_->OnAnchorsAdded(slots);
    for (const SlotRange& range : slots) {
      for (int64_t i = 0; i < range.count; ++i) {
        drawable_->insert(range.first + i);
      }
    }
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    inner_->OnAnchorsRemoved(slots);
    for (const SlotRange& range : slots) {
      for (int64_t i = 0; i < range.count; ++i) {
        drawable_->erase(range.first + i);
      }
    }
  }
  void OnAnchorsCleared() override {
    inner_->OnAnchorsCleared();
    drawable_->clear();
  }

 private:
  const std::unique_ptr<PrioritizedSelector> inner_;
  std::set<Slot>* const drawable_;
};

// Hands events on to a sampler, and knows the plain way what its selector
// should: the priority of each slot, and of each row that is being overwritten.
// Every other write in place makes other rows.
class Watched final : public WriteObserver {
 public:
  explicit Watched(UnitMaker make_unit) : make_unit_(make_unit) { Make(); }

  void Make() {
    sampler = *MakeSampler(std::make_unique<Spy>(&drawable_, &selector),
                           make_unit_(), "Watched");
  }
  void Check() const {
    ASSERT_EQ(selector->Priorities(), priorities);
    ASSERT_EQ(selector->DefaultPriority(), Default());
  }
  // Draws a batch where that is possible, and gives its rows priorities.
  void Update(uint64_t number, const Rng& rng) {
    SamplePlan plan;
    if (!sampler->Plan({.batch_size = 3, .batch_number = number}, &plan).ok()) {
      return;
    }
    std::vector<float> values;
    for (uint32_t i = 0; i < plan.draws.size(); ++i) {
      values.push_back(rng.UniformFloat(number, 100 + i) * 8);
    }
    std::vector<uint8_t> is_current(plan.draws.size());
    sampler->FindCurrent(plan.draws, absl::MakeSpan(is_current));
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_current[i] != 0) priorities[plan.draws[i].slot] = values[i];
    }
    RILL_ASSERT_OK(sampler->UpdatePriorities(plan.draws, values));
  }
  // Goes on with another sampler that has the state of this one. Nothing is in
  // flight.
  void Reload(const StorageModel& model) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
    const std::vector<float> before = priorities;
    Make();
    model.Attach(this);
    RILL_ASSERT_OK(sampler->LoadState(state));
    priorities = before;
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    sampler->observer()->OnAttach(lanes, cursors);
    priorities.assign(lanes.num_slots(), 0);
  }
  void OnRetire(const WriteEvent& event) override {
    if (event.is_append) {
      for (const Slot slot : SlotsOf(event.retired)) {
        if (drawable_.contains(slot)) overwritten_[slot] = priorities[slot];
        priorities[slot] = 0;
      }
    }
    sampler->observer()->OnRetire(Told(event));
  }
  void OnWrite(const WriteEvent& event) override {
    const WriteEvent told = Told(event);
    const float priority = Default();
    for (const Slot slot : SlotsOf(event.written)) {
      if (event.is_append || told.is_replacement) priorities[slot] = priority;
      if (event.is_append) overwritten_.erase(slot);
    }
    sampler->observer()->OnWrite(told);
  }
  void OnClear() override {
    sampler->observer()->OnClear();
    std::fill(priorities.begin(), priorities.end(), 0);
  }

  PrioritizedSelector* selector = nullptr;
  std::unique_ptr<Sampler> sampler;
  std::vector<float> priorities;  // By slot.

 private:
  static std::vector<Slot> SlotsOf(absl::Span<const SlotRange> ranges) {
    std::vector<Slot> slots;
    for (const SlotRange& range : ranges) {
      for (int64_t i = 0; i < range.count; ++i) {
        slots.push_back(range.first + i);
      }
    }
    return slots;
  }
  static WriteEvent Told(const WriteEvent& event) {
    WriteEvent told = event;
    told.is_replacement =
        !event.is_append && event.written.front().first % 2 == 0;
    return told;
  }
  float Default() const {
    float max = -1;
    for (const Slot slot : drawable_) max = std::max(max, priorities[slot]);
    for (const auto& [slot, priority] : overwritten_) {
      max = std::max(max, priority);
    }
    return max < 0 ? 1 : max;
  }

  const UnitMaker make_unit_;
  std::set<Slot> drawable_;
  std::map<Slot, float> overwritten_;
};

struct Param {
  const char* name;
  UnitMaker make_unit;
};
class NewRowPriorityModelTest : public ::testing::TestWithParam<Param> {};

INSTANTIATE_TEST_SUITE_P(Units, NewRowPriorityModelTest,
                         ::testing::Values(Param{"Rows", &MakeTransitionUnit},
                                           Param{"Slices", &SlicesOfThree}),
                         [](const auto& info) { return info.param.name; });

// Writes to some lanes or all, in parts, longer than the ring, in place,
// several in flight; with updates, clears and saves between.
TEST_P(NewRowPriorityModelTest, LargestInBufferIsThatOfThePlainModel) {
  for (uint64_t number = 0; number < 30; ++number) {
    SCOPED_TRACE(number);
    const Rng rng(number);
    TrajectoryHistory history(number, /*max_capacity=*/12);
    Watched watched(GetParam().make_unit);
    history.model().AddObserver(&watched);
    for (uint32_t step = 0; step < 120; ++step) {
      history.Step();
      ASSERT_NO_FATAL_FAILURE(watched.Check());
      const int64_t what = rng.UniformInt(step, 0, 8);
      if (what < 4) {
        watched.Update(step, rng);
        ASSERT_NO_FATAL_FAILURE(watched.Check());
      } else if (what == 4) {
        history.model().FinishAll();
        watched.Reload(history.model());
        ASSERT_NO_FATAL_FAILURE(watched.Check());
      }
    }
  }
}

// A ring of four rows, full, with the priorities of which an append changed the
// default.
class FullRing {
 public:
  explicit FullRing(UnitMaker make_unit = &MakeTransitionUnit)
      : watched(make_unit) {
    model.AddObserver(&watched);
    model.Append(0, 1, 4, NoEnd);
    std::vector<Draw> draws;
    for (Slot slot = 0; slot < 4; ++slot) draws.push_back({.slot = slot});
    RILL_EXPECT_OK(
        watched.sampler->UpdatePriorities(draws, {80.f, 50.f, 60.f, 70.f}));
  }
  std::vector<float> Priorities() const {
    return watched.selector->Priorities();
  }
  static StorageModel::Value NoEnd(int64_t /*lane*/) { return {}; }

  StorageModel model{{.count = 1, .capacity = 4}, {}};
  Watched watched;
};

TEST(NewRowPriorityTest, P15_AppendOverTheWholeRingHandsTheLargestOn) {
  FullRing ring;
  ring.model.Append(0, 1, 4, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(80, 80, 80, 80));
}

TEST(NewRowPriorityTest, AppendLongerThanTheRingHandsTheLargestOn) {
  FullRing ring;
  ring.model.Append(0, 1, 11, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(80, 80, 80, 80));
}

TEST(NewRowPriorityTest, AppendOverTheLargestRowHandsItOn) {
  FullRing ring;
  ring.model.Append(0, 1, 1, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(80, 50, 60, 70));
  ring.model.Append(0, 1, 1, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(80, 80, 60, 70));
}

TEST(NewRowPriorityTest, AppendsInFlightCountForOneAnother) {
  FullRing ring;
  ring.model.BeginAppend(0, {1}, FullRing::NoEnd);
  EXPECT_EQ(ring.watched.selector->DefaultPriority(), 80);
  ring.model.BeginAppend(0, {3}, FullRing::NoEnd);
  EXPECT_EQ(ring.watched.selector->DefaultPriority(), 80);
  EXPECT_THAT(ring.Priorities(), ElementsAre(0, 0, 0, 0));
  ring.model.FinishAppend();
  ring.model.FinishAppend();
  EXPECT_THAT(ring.Priorities(), ElementsAre(80, 80, 80, 80));
}

TEST(NewRowPriorityTest, UpdateLowersIt) {
  FullRing ring;
  RILL_ASSERT_OK(ring.watched.sampler->UpdatePriorities(
      std::vector<Draw>{{.slot = 0}}, {5.f}));
  ring.model.Append(0, 1, 1, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(70, 50, 60, 70));
}

// Two slices of three can begin, at rows 0 and 1: the largest of the others
// does not count, and all starts are overwritten.
TEST(NewRowPriorityTest, OverSlicesThatOfAllOverwrittenStartsIsHandedOn) {
  FullRing ring(&SlicesOfThree);
  RILL_ASSERT_OK(ring.watched.sampler->UpdatePriorities(
      std::vector<Draw>{{.slot = 0}, {.slot = 3}}, {40.f, 90.f}));
  ring.model.Append(0, 1, 2, FullRing::NoEnd);
  EXPECT_THAT(ring.Priorities(), ElementsAre(50, 50, 60, 90));
}

}  // namespace
}  // namespace rill
