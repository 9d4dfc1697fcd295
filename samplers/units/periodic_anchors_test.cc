// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/periodic_anchors.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/samplers/units/anchor_recorder.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

using ::testing::ElementsAre;

using Rule = PeriodicAnchors::Rule;

// Gives each live row the number of its step in its trajectory, by looking at
// all rows after each event.
class StepCounter final : public WriteObserver {
 public:
  explicit StepCounter(const StorageModel* model) : model_(model) {}

  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent& event) override {
    if (event.is_append) Look(/*goes_on=*/false);
  }
  void OnWrite(const WriteEvent& event) override {
    Look(event.is_append && event.begins_cut.empty());
  }
  void OnClear() override {
    tails_.clear();
    Look(/*goes_on=*/false);
  }

  std::set<Slot> AnchorsBy(const Rule& rule) const {
    std::set<Slot> anchors;
    for (const auto& trajectory : model_->Trajectories()) {
      const std::vector<Slot>& slots = trajectory.slots;
      const auto rows = static_cast<int64_t>(slots.size());
      for (int64_t i = rule.before; i < rows - rule.after; ++i) {
        if (steps_.at(slots[i]) % rule.period == 0) anchors.insert(slots[i]);
      }
    }
    return anchors;
  }

 private:
  // `goes_on`: what is cut and new goes on with what its lane had last.
  void Look(bool goes_on) {
    const std::map<Slot, int64_t> before = std::exchange(steps_, {});
    for (const auto& trajectory : model_->Trajectories()) {
      const auto known = before.find(trajectory.slots[0]);
      const auto tail = tails_.find(trajectory.lane);
      int64_t step = 0;
      if (trajectory.is_cut && known != before.end()) {
        step = known->second;
      } else if (trajectory.is_cut && goes_on && tail != tails_.end()) {
        step = tail->second;
      }
      for (const Slot slot : trajectory.slots) steps_[slot] = step++;
    }
    for (int64_t lane = 0; lane < model_->lanes().count; ++lane) {
      const std::vector<Slot> live = model_->LiveOf(lane);
      if (!live.empty()) tails_[lane] = steps_.at(live.back()) + 1;
    }
  }

  const StorageModel* model_;
  std::map<Slot, int64_t> steps_;
  std::map<int64_t, int64_t> tails_;  // The step behind the newest, by lane.
};

TEST(PeriodicAnchorsTest, AreThoseOfTheRuleWhateverIsWritten) {
  const std::vector<Rule> rules = {{},
                                   {.period = 2},
                                   {.period = 3, .after = 2},
                                   {.period = 4, .before = 2},
                                   {.period = 5, .before = 1, .after = 3},
                                   {.before = 3, .after = 1}};
  for (uint64_t number = 0; number < 180; ++number) {
    const Rule& rule = rules[number / 6 % rules.size()];
    TrajectoryHistory history(number, /*max_capacity=*/24);
    StepCounter counter(&history.model());
    PeriodicAnchors anchors(rule);
    PeriodicAnchors unheard(rule);
    AnchorRecorder recorder;
    anchors.SetListener(&recorder);
    history.model().AddObserver(&counter);
    history.model().AddObserver(&anchors);
    history.model().AddObserver(&unheard);
    for (int step = 0; step < 100; ++step) {
      history.Step();
      const std::set<Slot> want = counter.AnchorsBy(rule);
      ASSERT_EQ(recorder.anchors, want)
          << "history " << number << " step " << step;
      ASSERT_EQ(anchors.size(), static_cast<int64_t>(want.size()));
      std::set<Slot> numbered;
      for (int64_t n = 0; n < anchors.size(); ++n) {
        numbered.insert(anchors.At(n));
        ASSERT_EQ(unheard.At(n), anchors.At(n));
      }
      ASSERT_EQ(numbered, want);
      for (Slot slot = 0; slot < history.model().lanes().num_slots(); ++slot) {
        ASSERT_EQ(anchors.Contains(slot), want.count(slot) == 1);
      }
    }
  }
}

TEST(PeriodicAnchorsTest, CountGoesOnWhereAnAppendReplacesAllRows) {
  StorageModel model({.count = 1, .capacity = 4}, {});
  PeriodicAnchors anchors({.period = 3});
  AnchorRecorder recorder;
  anchors.SetListener(&recorder);
  model.AddObserver(&anchors);
  model.Append(0, {{.id = 1}, {.id = 1}, {.id = 1}, {.id = 1}});
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 3));
  model.Append(0, {{.id = 1}, {.id = 1}, {.id = 1}, {.id = 1}});
  EXPECT_THAT(recorder.anchors, ElementsAre(2));  // Step 6.
  model.Append(0, {{.id = 2}, {.id = 2}, {.id = 2}, {.id = 2}});
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 3));
}

TEST(PeriodicAnchorsTest, NeighboursOfTwoLanesChangeBoth) {
  StorageModel model({.count = 2, .capacity = 4}, {.ids = false});
  PeriodicAnchors anchors({.after = 1});
  AnchorRecorder recorder;
  anchors.SetListener(&recorder);
  model.AddObserver(&anchors);
  model.Append(0, {{}, {}, {}, {}});
  model.Append(1, {{}, {}, {}, {}});
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 1, 2, 4, 5, 6));
  model.WriteInPlace({3, 4}, {{.is_end = true}, {.is_end = true}},
                     {.ids = false});
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 1, 2, 5, 6));
}

// Counts the ranges that it receives, and the rows in them.
class RangeCounter final : public AnchorListener {
 public:
  struct Told {
    int64_t ranges = 0;
    int64_t rows = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };

  void OnAnchorsAdded(absl::Span<const SlotRange> slots) override {
    Count(slots, &added_);
  }
  void OnAnchorsRemoved(absl::Span<const SlotRange> slots) override {
    Count(slots, &removed_);
  }
  void OnAnchorsCleared() override {}

  Told TakeAdded() { return std::exchange(added_, {}); }
  Told TakeRemoved() { return std::exchange(removed_, {}); }

 private:
  static void Count(absl::Span<const SlotRange> slots, Told* told) {
    for (const SlotRange& range : slots) {
      ++told->ranges;
      told->rows += range.count;
    }
  }

  Told added_, removed_;
};

// A long trajectory that goes on causes the same events as a short one.
TEST(PeriodicAnchorsTest, WhatIsToldIsWhatChangesNotTheTrajectory) {
  using Told = RangeCounter::Told;
  const std::vector<StorageModel::Value> eight(8, {.id = 1});
  for (const int64_t capacity : {64, 512}) {
    for (const int64_t period : {1, 4}) {
      // For 8 rows one behind another.
      const Told of_eight = period == 1 ? Told{1, 8} : Told{2, 2};
      StorageModel model({.count = 1, .capacity = capacity}, {});
      PeriodicAnchors anchors({.period = period, .after = 3});
      RangeCounter counter;
      anchors.SetListener(&counter);
      model.AddObserver(&anchors);
      model.Append(0,
                   std::vector<StorageModel::Value>(capacity - 8, {.id = 1}));
      counter.TakeAdded();
      model.Append(0, eight);
      EXPECT_EQ(counter.TakeAdded(), of_eight);
      EXPECT_EQ(counter.TakeRemoved(), Told());
      model.Append(0, eight);  // Evicts as many.
      EXPECT_EQ(counter.TakeRemoved(), of_eight);
      // Three rows before the end of the ring, and five.
      EXPECT_EQ(counter.TakeAdded(), period == 1 ? (Told{2, 8}) : of_eight);

      // In place, where nothing but the values changes; then with an end that
      // costs the three anchors before it.
      const Slot middle = capacity / 2;
      model.WriteInPlace({middle, middle + 1}, {{}, {}},
                         {.ends = false, .ids = false});
      const Told written = period == 1 ? Told{2, 2} : Told{1, 1};
      EXPECT_EQ(counter.TakeRemoved().rows, written.rows);
      EXPECT_EQ(counter.TakeAdded().rows, written.rows);
      model.WriteInPlace({middle + 3}, {{.is_end = true}}, {.ids = false});
      EXPECT_EQ(counter.TakeRemoved(), period == 1 ? (Told{1, 3}) : Told());
      EXPECT_EQ(counter.TakeAdded(), Told());
    }
  }
}

SavedState StateOf(const PeriodicAnchors& anchors) {
  SavedState state("Test", 1);
  anchors.Save(&state);
  return state;
}

std::string Saved(const PeriodicAnchors& anchors) {
  return StateOf(anchors).Encode();
}

// Attaching sees rows 4 .. of the open one, and counts from there.
TEST(PeriodicAnchorsTest, StateTellsWhatAttachingDoesNot) {
  StorageModel model({.count = 1, .capacity = 6}, {.ids = false});
  PeriodicAnchors saved({.period = 3});
  model.AddObserver(&saved);
  for (int i = 0; i < 10; ++i) model.Append(0, {{}});
  EXPECT_TRUE(saved.Contains(0));  // Step 6.
  PeriodicAnchors loaded({.period = 3});
  AnchorRecorder recorder;
  loaded.SetListener(&recorder);
  model.AddObserver(&loaded);
  EXPECT_THAT(recorder.anchors, ElementsAre(1, 4));
  const std::string bytes = Saved(saved);
  RILL_ASSERT_OK(loaded.Load(StateOf(saved), {}));
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 3));
  EXPECT_EQ(Saved(loaded), bytes);
  model.Append(0, {{}, {}, {}});
  EXPECT_THAT(recorder.anchors, ElementsAre(0, 3));
  EXPECT_EQ(Saved(loaded), Saved(saved));

  PeriodicAnchors other({.period = 2});
  model.AddObserver(&other);
  EXPECT_THAT(other.Load(StateOf(saved), {}),
              IsFailedPrecondition("period: got 3, want 2"));
}

}  // namespace
}  // namespace rill::samplers_internal
