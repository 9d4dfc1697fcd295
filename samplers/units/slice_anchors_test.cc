// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/slice_anchors.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/samplers/trajectories/weighed_set.h"
#include "rill/samplers/units/anchor_recorder.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

std::set<Slot> AnchorsOf(const StorageModel& model, const StartRule& rule) {
  std::set<Slot> anchors;
  for (const StorageModel::Trajectory& trajectory : model.Trajectories()) {
    const int64_t count =
        rule.Count(static_cast<int64_t>(trajectory.slots.size()),
                   trajectory.is_cut, trajectory.is_closed);
    anchors.insert(trajectory.slots.begin(), trajectory.slots.begin() + count);
  }
  return anchors;
}

TEST(SliceAnchorsTest, ListenerHearsOfExactlyThoseThatComeAndGo) {
  const std::vector<StartRule> rules = {
      {},
      {.length = 3},
      {.length = 4, .is_strict = false},
      {.length = 4, .overhang = 3},
      {.length = 3, .is_strict = false, .overhang = 2},
      {.length = 2, .only_first = true, .needs_beginning = true},
      {.only_first = true, .needs_beginning = true, .needs_end = true}};
  for (uint64_t number = 0; number < 168; ++number) {
    const StartRule& rule = rules[number / 6 % rules.size()];
    TrajectoryHistory history(number, /*max_capacity=*/20);
    SliceAnchors anchors(rule);
    AnchorRecorder recorder;
    anchors.SetListener(&recorder);
    history.model().AddObserver(&anchors);
    SliceAnchors unheard(rule);  // Of which nobody is notified.
    history.model().AddObserver(&unheard);
    for (int step = 0; step < 100; ++step) {
      history.Step();
      const std::set<Slot> want = AnchorsOf(history.model(), rule);
      ASSERT_EQ(recorder.anchors, want)
          << "history " << number << " step " << step;
      for (Slot slot = 0; slot < history.model().lanes().num_slots(); ++slot) {
        ASSERT_EQ(anchors.Contains(slot), want.count(slot) == 1);
        ASSERT_EQ(unheard.Contains(slot), want.count(slot) == 1);
      }
    }
  }
}

void ExpectSameSets(const WeighedSet& got, const WeighedSet& want) {
  ASSERT_EQ(got.members(), want.members());
  for (const int32_t member : want.members()) {
    ASSERT_EQ(got.WeightOf(member), want.WeightOf(member));
  }
}

// Its index learns late of rows that are retired; nobody can tell.
TEST(SliceAnchorsTest, SetsAreThoseOfAnIndexThatLearnsOfAllAtOnce) {
  const std::vector<StartRule> rules = {
      {},
      {.length = 3},
      {.length = 4, .overhang = 3},
      {.length = 2, .only_first = true, .needs_beginning = true},
      {.length = 2, .needs_end = true}};
  for (uint64_t number = 0; number < 120; ++number) {
    const StartRule& rule = rules[number / 6 % rules.size()];
    TrajectoryHistory history(number, /*max_capacity=*/8);
    SliceAnchors anchors(rule);
    TrajectoryIndex index({rule});
    history.model().AddObserver(&anchors);
    history.model().AddObserver(&index);
    for (int step = 0; step < 200; ++step) {
      history.Step();
      if (step % 7 != 0 && number % 2 == 0) continue;
      ExpectSameSets(anchors.trajectories(), index.starts(0));
      if (HasFatalFailure()) FAIL() << "history " << number << " step " << step;
    }
  }
}

std::string SavedBytes(const TrajectoryIndex& index) {
  SavedState state("Test", 1);
  index.Save(&state);
  return state.Encode();
}

// All that an index tells of trajectories, and of the rows of some lanes.
void ExpectSameRows(const TrajectoryIndex& got, const TrajectoryIndex& want) {
  ASSERT_EQ(SavedBytes(got), SavedBytes(want));
  ASSERT_EQ(got.num_rows(), want.num_rows());
  const Lanes& lanes = want.lanes();
  for (Slot slot = 0; slot < lanes.num_slots(); ++slot) {
    // Lanes beside the borders of 64, and of a write of some lanes.
    if (lanes.LaneOf(slot) % 64 > 2 && lanes.LaneOf(slot) / 2 != 349) continue;
    const auto a = got.Find(slot);
    const auto b = want.Find(slot);
    ASSERT_EQ(a.has_value(), b.has_value()) << "slot " << slot;
    if (!b.has_value()) continue;
    ASSERT_EQ(a->trajectory, b->trajectory) << "slot " << slot;
    ASSERT_EQ(a->offset, b->offset) << "slot " << slot;
    ASSERT_EQ(got.AgeOf(slot), want.AgeOf(slot)) << "slot " << slot;
    ASSERT_EQ(got.At(a->trajectory, a->offset), slot);
    std::vector<TrajectoryIndex::Piece> pieces;
    got.AppendPieces({slot, 1}, &pieces);
    ASSERT_EQ(pieces.size(), 1);
    ASSERT_EQ(pieces[0].place.offset, b->offset) << "slot " << slot;
  }
}

// Thousands of lanes, of which few end, and some fall out of step. Rings are
// full from the fifth step on.
TEST(SliceAnchorsTest, SetsOfManyLanesAreThoseOfAnIndexThatLearnsAtOnce) {
  constexpr int64_t kLanes = 2000;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Rng rng(seed);
    const StartRule rule = {.length = 1 + static_cast<int64_t>(seed % 3)};
    StorageModel model({.count = kLanes, .capacity = 5},
                       {.ends = true, .ids = seed % 2 == 1});
    SliceAnchors anchors(rule);
    TrajectoryIndex index({rule});
    model.AddObserver(&anchors);
    model.AddObserver(&index);
    for (uint64_t step = 0; step < 48; ++step) {
      uint32_t draw = 0;
      const auto next = [&](int64_t lane) -> StorageModel::Value {
        return {.is_end = rng.UniformInt(step, draw++, 100) == 0,
                .id = lane + kLanes * static_cast<int64_t>(step / 12)};
      };
      // Now and then only some of them, several steps, a look in between, or
      // other ends in place.
      const int64_t kind = rng.UniformInt(step, draw++, 8);
      const int64_t first = kind == 0 ? 700 : 0;
      const int64_t count = kind == 0 ? 900 : kLanes;
      const int64_t steps = kind == 1 ? 2 : 1;
      model.BeginAppend(first, std::vector<int64_t>(count, steps), next);
      if (kind == 2) {
        ExpectSameSets(anchors.trajectories(), index.starts(0));
      }
      model.FinishAppend();
      if (kind == 3) {
        const std::vector<Slot> live = model.LiveOf(64 * (step % 31));
        model.WriteInPlace({live[live.size() / 2]}, {{.is_end = true}},
                           {.ends = true, .ids = false});
      }
      ExpectSameSets(anchors.trajectories(), index.starts(0));
      if (!HasFatalFailure()) ExpectSameRows(anchors.index(), index);
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
      for (const int32_t member : index.starts(0).members()) {
        const int64_t rows = index.Get(member).rows;
        ASSERT_EQ(anchors.index().Get(member).rows, rows);
        ASSERT_EQ(anchors.index().At(member, 0), index.At(member, 0));
        ASSERT_EQ(anchors.index().At(member, rows - 1),
                  index.At(member, rows - 1));
      }
    }
  }
}

// Attaching cannot tell that a trajectory is cut whose rows lie between those
// of others; the state does.
TEST(SliceAnchorsTest, ListenerHearsWhatALoadedStateChanges) {
  const StartRule rule = {.only_first = true, .needs_beginning = true};
  StorageModel model({.count = 1, .capacity = 6}, {});
  SliceAnchors saved(rule);
  model.AddObserver(&saved);
  model.Append(0, {{.id = 1}, {.id = 2}, {.id = 1}, {.id = 2}, {.id = 1}});
  model.Append(0, {{.id = 2}, {.id = 3}, {.id = 3}});
  SavedState state("Test", 1);
  saved.Save(&state);

  SliceAnchors loaded(rule);
  AnchorRecorder recorder;
  loaded.SetListener(&recorder);
  model.AddObserver(&loaded);
  EXPECT_THAT(recorder.anchors, ::testing::ElementsAre(0, 3));
  RILL_ASSERT_OK(loaded.Load(state, {}));
  EXPECT_THAT(recorder.anchors, ::testing::ElementsAre(0));
}

TEST(SliceAnchorsTest, RowWrittenInPlaceCeasesAndBecomesOneAgain) {
  StorageModel model({.count = 1, .capacity = 8}, {});
  SliceAnchors anchors({.length = 2});
  AnchorRecorder recorder;
  anchors.SetListener(&recorder);
  model.AddObserver(&anchors);
  model.Append(0, {{}, {}, {}, {}, {}});
  model.WriteInPlace({1, 4}, {{}, {}}, {.ends = false, .ids = false});
  EXPECT_THAT(recorder.removed, ::testing::ElementsAre(1));
  EXPECT_THAT(recorder.anchors, ::testing::ElementsAre(0, 1, 2, 3));
  // An end splits: the row with it starts nothing any more, others stay as
  // they were.
  recorder.removed.clear();
  model.WriteInPlace({2}, {{.is_end = true}}, {.ids = false});
  EXPECT_THAT(recorder.removed, ::testing::ElementsAre(2));
  EXPECT_THAT(recorder.anchors, ::testing::ElementsAre(0, 1, 3));
  // The model names each row, storages name a run of rows as one range.
  recorder.removed.clear();
  const SlotRange run = {0, 3};
  WriteEvent event;
  event.is_append = false;
  event.retired = event.written = {&run, 1};
  anchors.OnRetire(event);
  anchors.OnWrite(event);
  EXPECT_THAT(recorder.removed, ::testing::ElementsAre(0, 1));
  EXPECT_THAT(recorder.anchors, ::testing::ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace rill::samplers_internal
