// SPDX-License-Identifier: Apache-2.0
// A name like S12 is the number of the TorchRL behaviour that a test repeats.
#include "rill/samplers/units/slice_unit.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kSeed = 20240722;
constexpr double kFalseAlarms = 1e-9;
using Value = StorageModel::Value;

std::unique_ptr<Unit> MakeUnit(const SliceUnitOptions& options) {
  return *MakeSliceUnit(options);
}

// The plan that a uniform selector and a sampler make of the unit.
SamplePlan PlanOf(const Unit& unit, int64_t batch_size, uint64_t batch) {
  SamplePlan plan;
  const auto count = unit.NumAnchors(batch_size);
  RILL_EXPECT_OK(count.status());
  const Rng rng(kSeed, RngStream::kSampler);
  for (int64_t i = 0; i < *count; ++i) {
    plan.draws.push_back({.slot = unit.anchors().Pick(
                              rng.Bits(batch, static_cast<uint32_t>(i)))});
    EXPECT_TRUE(unit.anchors().Contains(plan.draws.back().slot));
  }
  unit.Expand(Rng(kSeed, RngStream::kSampler, 1), batch, &plan);
  return plan;
}

// A plan's rows, slice by slice.
std::vector<std::vector<Slot>> SlicesOf(const SamplePlan& plan) {
  std::vector<std::vector<Slot>> slices(plan.draws.size());
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    slices[plan.segments[i]].push_back(plan.rows[i]);
  }
  return slices;
}

// Rows of an episode, of which the last one ends it.
std::vector<Value> Episode(int64_t rows, int64_t id = 0) {
  std::vector<Value> values(rows, Value{.id = id});
  values.back().is_end = true;
  return values;
}

class SliceUnitTest : public ::testing::Test {
 protected:
  // One lane with end flags only.
  void Store(Unit* unit, int64_t capacity,
             const std::vector<int64_t>& episodes) {
    storage_ =
        std::make_unique<StorageModel>(Lanes{.count = 1, .capacity = capacity},
                                       StorageModel::Told{.ids = false});
    storage_->AddObserver(unit);
    for (const int64_t rows : episodes) storage_->Append(0, Episode(rows));
  }

  std::unique_ptr<StorageModel> storage_;
};

TEST_F(SliceUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Unit> slices,
                            MakeSliceUnit({.length = 4}));
  Store(slices.get(), 16, {5});
  const SamplePlan plan = PlanOf(*slices, 8, 0);
  for (const std::vector<Slot>& slice : SlicesOf(plan)) {
    EXPECT_THAT(slice, testing::AnyOf(ElementsAre(0, 1, 2, 3),
                                      ElementsAre(1, 2, 3, 4)));
  }
}

TEST_F(SliceUnitTest, S1_ShortTrajectoriesAreNeverDrawnWhereLengthIsStrict) {
  const auto unit = MakeUnit({.length = 4});
  Store(unit.get(), 16, {2, 10});
  for (uint64_t batch = 0; batch < 100; ++batch) {
    const SamplePlan plan = PlanOf(*unit, 8, batch);
    ASSERT_EQ(plan.rows.size(), 8u);
    EXPECT_GE(*std::min_element(plan.rows.begin(), plan.rows.end()), 2);
    EXPECT_THAT(plan.mask, IsEmpty());
  }
}

TEST_F(SliceUnitTest, S2_ShortTrajectoriesMakeTheBatchSmallerWhereItIsNot) {
  const auto unit = MakeUnit({.length = 4, .is_strict = false});
  Store(unit.get(), 16, {2, 10});
  std::set<size_t> sizes;
  for (uint64_t batch = 0; batch < 100; ++batch) {
    const SamplePlan plan = PlanOf(*unit, 8, batch);
    sizes.insert(plan.rows.size());
    int64_t of_short_one = 0;
    for (const std::vector<Slot>& slice : SlicesOf(plan)) {
      if (slice[0] != 0) {
        EXPECT_EQ(slice.size(), 4u);
        continue;
      }
      EXPECT_THAT(slice, ElementsAre(0, 1));
      ++of_short_one;
    }
    EXPECT_EQ(static_cast<int64_t>(plan.rows.size()), 8 - 2 * of_short_one);
  }
  EXPECT_THAT(sizes, ElementsAre(4, 6, 8));
}

TEST_F(SliceUnitTest, S3_SaysHowLongTrajectoriesAreWhereNoneIsLongEnough) {
  const auto unit = MakeUnit({.length = 20});
  EXPECT_THAT(unit->CheckAnchors(),
              IsFailedPrecondition("live rows: got 0, want >= 1"));
  Store(unit.get(), 16, {2, 10});
  EXPECT_THAT(unit->CheckAnchors(),
              IsFailedPrecondition("trajectories: got 2 of 2 to 10 rows, want "
                                   "one of 20 or more"));
  const auto starts =
      MakeUnit({.length = 2, .starts = SliceStarts::kEpisodeStarts});
  Store(starts.get(), 4, {8});
  EXPECT_THAT(starts->CheckAnchors(),
              IsFailedPrecondition("whose beginning is stored"));
}

TEST_F(SliceUnitTest, S4_BatchSizesAreMultiplesOfTheLength) {
  const auto unit = MakeUnit({.length = 4});
  EXPECT_THAT(unit->NumAnchors(8), IsOkAndHolds(2));
  EXPECT_THAT(unit->NumAnchors(10),
              IsInvalidArgument("batch size: got 10, want a multiple of 4"));
}

TEST_F(SliceUnitTest, S4_NumberOfSlicesDividesTheBatch) {
  const auto unit = MakeUnit({.num_slices = 2, .batch_size = 8});
  EXPECT_THAT(unit->NumAnchors(8), IsOkAndHolds(2));
  EXPECT_THAT(unit->NumAnchors(12), IsOkAndHolds(3));
  EXPECT_THAT(unit->NumAnchors(10),
              IsInvalidArgument("batch size: got 10, want a multiple of 4"));
  const auto refused = [](const SliceUnitOptions& options) {
    return MakeSliceUnit(options).status();
  };
  EXPECT_THAT(
      refused({.num_slices = 4, .batch_size = 10}),
      IsInvalidArgument("batch_size and num_slices: got 10 and 4, want"));
  EXPECT_THAT(refused({.num_slices = 4}),
              IsInvalidArgument("got 0 and 4, want"));
  constexpr int64_t kMost = Sampler::kMaxBatchSize;
  RILL_EXPECT_OK(refused({.num_slices = 1, .batch_size = kMost}));
  EXPECT_THAT(
      refused({.num_slices = 1, .batch_size = kMost + 1}),
      IsInvalidArgument("got 16777217 and 1, want the first in [1, 16777216]"));
  EXPECT_THAT(refused({.num_slices = 2, .batch_size = -4}),
              IsInvalidArgument("got -4 and 2, want"));
  RILL_EXPECT_OK(refused({.length = kMost}));
  for (const int64_t length : {int64_t{-1}, int64_t{0}, kMost + 1}) {
    EXPECT_THAT(refused({.length = length}),
                IsInvalidArgument("want [1, 16777216], or num_slices"));
  }
  EXPECT_THAT(refused({.num_slices = -1, .batch_size = 4}),
              IsInvalidArgument("got 4 and -1, want"));
  EXPECT_THAT(
      refused({.length = 4, .num_slices = 2, .batch_size = 8}),
      IsInvalidArgument("length and num_slices: got 4 and 2, want one"));
  EXPECT_THAT(
      refused({.length = 4, .batch_size = 8}),
      IsInvalidArgument("batch_size: got 8 without num_slices, want 0"));
}

TEST_F(SliceUnitTest, S5_StepsFollowOneAnotherInOneEpisodeAndAllAreDrawn) {
  const auto unit = MakeUnit({.length = 10});
  Store(unit.get(), 100, {30, 25, 15, 30});
  const std::vector<Slot> firsts = {0, 30, 55, 70, 100};
  std::set<Slot> drawn;
  for (uint64_t batch = 0; batch < 200; ++batch) {
    for (const std::vector<Slot>& slice : SlicesOf(PlanOf(*unit, 50, batch))) {
      ASSERT_EQ(slice.size(), 10u);
      for (size_t i = 1; i < 10; ++i) EXPECT_EQ(slice[i], slice[i - 1] + 1);
      EXPECT_EQ(std::upper_bound(firsts.begin(), firsts.end(), slice[0]),
                std::upper_bound(firsts.begin(), firsts.end(), slice[9]));
      drawn.insert(slice.begin(), slice.end());
    }
  }
  EXPECT_EQ(drawn.size(), 100u);
}

TEST_F(SliceUnitTest, S8_EveryEndFlagClosesASegment) {
  const auto unit = MakeUnit({.length = 3});
  Store(unit.get(), 6, {3, 3});
  std::set<std::vector<Slot>> seen;
  for (const auto& slice : SlicesOf(PlanOf(*unit, 300, 0))) seen.insert(slice);
  EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
}

TEST_F(SliceUnitTest, S10_NewestAndOldestRowsAreNoNeighbours) {
  for (int64_t cursor = 0; cursor < 12; ++cursor) {
    const auto unit = MakeUnit({.length = 3});
    Store(unit.get(), 12, {12});
    storage_->Append(0, std::vector<Value>(12 + cursor));
    const int64_t oldest = cursor % 12;
    std::set<Slot> starts;
    for (const auto& slice : SlicesOf(PlanOf(*unit, 600, 0))) {
      starts.insert(slice[0]);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(slice[i], (slice[0] + static_cast<int64_t>(i)) % 12);
        // Never over the seam.
        if (i > 0) {
          EXPECT_NE(slice[i], oldest);
        }
      }
    }
    EXPECT_EQ(starts.size(), 10u);  // All that are possible.
  }
}

TEST_F(SliceUnitTest, S11_AnyWriteRefreshesTheBoundaries) {
  const auto unit = MakeUnit({.length = 4});
  const auto other = MakeUnit({.length = 2});
  Store(unit.get(), 8, {8});
  storage_->AddObserver(other.get());
  EXPECT_EQ(unit->anchors().size(), 5);
  EXPECT_EQ(other->anchors().size(), 7);
  storage_->WriteInPlace({3}, {{.is_end = true}}, {.ids = false});
  EXPECT_EQ(unit->anchors().size(), 2);
  EXPECT_EQ(other->anchors().size(), 6);
  storage_->WriteInPlace({3, 7}, {{}, {}}, {.ids = false});
  EXPECT_EQ(unit->anchors().size(), 5);
  storage_->Append(0, std::vector<Value>(2));
  EXPECT_EQ(unit->anchors().size(), 5);
  EXPECT_FALSE(unit->anchors().Contains(0));
}

// All (start, length) of a trajectory of `rows` at equal shares; the starts
// before its first row are negative.
void ExpectUniformSlices(
    const SliceUnitOptions& options, int64_t rows,
    const std::map<std::pair<int64_t, int64_t>, int64_t>& share_of_slices) {
  const auto unit = MakeUnit(options);
  StorageModel storage({.count = 1, .capacity = rows}, {.ids = false});
  storage.AddObserver(unit.get());
  storage.Append(0, Episode(rows));
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (const auto& [slice, share] : share_of_slices) counts[slice] = 0;
  for (uint64_t batch = 0; batch < 100; ++batch) {
    for (const auto& slice :
         SlicesOf(PlanOf(*unit, 100 * options.length, batch))) {
      ASSERT_FALSE(slice.empty());  // S13.
      ++counts[{slice[0], static_cast<int64_t>(slice.size())}];
    }
  }
  std::vector<int64_t> seen;
  std::vector<double> wanted;
  double total = 0;
  for (const auto& [slice, share] : share_of_slices) total += share;
  for (const auto& [slice, count] : counts) {
    const auto found = share_of_slices.find(slice);
    ASSERT_NE(found, share_of_slices.end())
        << "slice of " << slice.second << " at " << slice.first;
    seen.push_back(count);
    wanted.push_back(found->second / total);
  }
  EXPECT_THAT(seen, DistributedAs(wanted, kFalseAlarms));
}

TEST_F(SliceUnitTest, S12_LeftSpanLacksRowsAtTheBeginning) {
  for (const SliceStarts starts :
       {SliceStarts::kTrajectories, SliceStarts::kRows}) {
    ExpectUniformSlices({.length = 4, .span_left = 2, .starts = starts}, 10,
                        {{{0, 2}, 1},
                         {{0, 3}, 1},
                         {{0, 4}, 1},
                         {{1, 4}, 1},
                         {{2, 4}, 1},
                         {{3, 4}, 1},
                         {{4, 4}, 1},
                         {{5, 4}, 1},
                         {{6, 4}, 1}});
  }
  EXPECT_THAT(MakeSliceUnit({.length = 4, .span_left = 4}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "MakeSliceUnit: span_left: got 4, want [0, 3], less "
                       "than a slice's length"));
  EXPECT_THAT(MakeSliceUnit({.length = 4, .span_right = 4}).status(),
              IsInvalidArgument("span_right: got 4, want [0, 3]"));
  EXPECT_THAT(MakeSliceUnit({.length = 4, .span_right = -1}).status(),
              IsInvalidArgument("span_right: got -1, want [0, 3]"));
}

TEST_F(SliceUnitTest, S13_RightSpanHasNoEmptySlices) {
  ExpectUniformSlices(
      {.length = 3, .span_right = 2}, 5,
      {{{0, 3}, 1}, {{1, 3}, 1}, {{2, 3}, 1}, {{3, 2}, 1}, {{4, 1}, 1}});
  // Both at once, and a trajectory that is shorter than a slice: whole unless
  // it begins before (2 ways keep all 3 rows) or ends behind.
  ExpectUniformSlices(
      {.length = 5, .is_strict = false, .span_left = 4, .span_right = 4}, 3,
      {{{0, 1}, 1}, {{0, 2}, 1}, {{0, 3}, 3}, {{1, 2}, 1}, {{2, 1}, 1}});
}

TEST_F(SliceUnitTest, S13_NoSpanAndNoTrajectoryGivesAnEmptySlice) {
  for (int64_t number = 0; number < 4 * 4 * 4 * 6; ++number) {
    const int64_t length = number % 4 + 1;
    const int64_t rows = number / 64 + 1;
    const SliceUnitOptions options = {
        .length = length,
        .is_strict = false,
        .span_left = std::min(number / 4 % 4, length - 1),
        .span_right = std::min(number / 16 % 4, length - 1)};
    const auto unit = MakeUnit(options);
    Store(unit.get(), 16, {rows, 1, 9});
    for (const auto& slice : SlicesOf(PlanOf(*unit, 100 * length, 0))) {
      ASSERT_THAT(slice, Not(IsEmpty()));
      ASSERT_LE(slice.size(), static_cast<size_t>(length));
    }
  }
}

TEST_F(SliceUnitTest, S14_NothingIsMaskedWhereAllAreLongEnough) {
  const auto unit =
      MakeUnit({.length = 4, .is_strict = false, .is_padded = true});
  Store(unit.get(), 16, {4, 10});
  for (uint64_t batch = 0; batch < 50; ++batch) {
    EXPECT_THAT(PlanOf(*unit, 8, batch).mask, IsEmpty());
  }
}

TEST_F(SliceUnitTest, S14_MaskTellsRowsThatOnlyPad) {
  EXPECT_THAT(MakeSliceUnit({.length = 4, .is_padded = true}).status(),
              IsInvalidArgument("is_padded: got true"));
  const auto unit =
      MakeUnit({.length = 4, .is_strict = false, .is_padded = true});
  Store(unit.get(), 16, {2, 10});
  bool has_padding = false;
  for (uint64_t batch = 0; batch < 50; ++batch) {
    const SamplePlan plan = PlanOf(*unit, 8, batch);
    ASSERT_EQ(plan.rows.size(), 8u);
    bool is_padded = false;
    for (size_t i = 0; i < 8; i += 4) {
      if (plan.rows[i] != 0) continue;
      is_padded = true;
      EXPECT_THAT(std::vector<Slot>(&plan.rows[i], &plan.rows[i] + 4),
                  ElementsAre(0, 1, 1, 1));
      EXPECT_THAT(std::vector<int>(&plan.mask[i], &plan.mask[i] + 4),
                  ElementsAre(1, 1, 0, 0));
    }
    EXPECT_EQ(plan.mask.size(), is_padded ? 8u : 0u);
    has_padding |= is_padded;
  }
  EXPECT_TRUE(has_padding);
}

TEST_F(SliceUnitTest, S16_StartsInsideATrajectoryAreUniform) {
  ExpectUniformSlices({.length = 4}, 10,
                      {{{0, 4}, 1},
                       {{1, 4}, 1},
                       {{2, 4}, 1},
                       {{3, 4}, 1},
                       {{4, 4}, 1},
                       {{5, 4}, 1},
                       {{6, 4}, 1}});
}

// Counts of slices that begin at each slot.
std::vector<int64_t> CountStarts(const Unit& unit, int64_t num_slots,
                                 int64_t length) {
  std::vector<int64_t> counts(num_slots, 0);
  for (uint64_t batch = 0; batch < 200; ++batch) {
    for (const auto& slice : SlicesOf(PlanOf(unit, 100 * length, batch))) {
      ++counts[slice[0]];
    }
  }
  return counts;
}

TEST_F(SliceUnitTest, StartsFollowTheirRule) {
  // Starts at 2..5 (4 of them), 9, 10 and, where a beginning is enough, 2, 9.
  const std::vector<int64_t> episodes = {2, 7, 5};
  const auto share_of = [&](SliceStarts starts,
                            const std::map<Slot, double>& shares) {
    const auto unit = MakeUnit({.length = 4, .starts = starts});
    Store(unit.get(), 14, episodes);
    std::vector<double> wanted(14, 0.0);
    for (const auto& [slot, share] : shares) wanted[slot] = share;
    EXPECT_THAT(CountStarts(*unit, 14, 4), DistributedAs(wanted, kFalseAlarms));
  };
  share_of(SliceStarts::kTrajectories, {{2, 1.0 / 8},
                                        {3, 1.0 / 8},
                                        {4, 1.0 / 8},
                                        {5, 1.0 / 8},
                                        {9, 1.0 / 4},
                                        {10, 1.0 / 4}});
  share_of(SliceStarts::kRows, {{2, 1.0 / 6},
                                {3, 1.0 / 6},
                                {4, 1.0 / 6},
                                {5, 1.0 / 6},
                                {9, 1.0 / 6},
                                {10, 1.0 / 6}});
  share_of(SliceStarts::kRecent, {{2, 1.0 / 36},
                                  {3, 3.0 / 36},
                                  {4, 5.0 / 36},
                                  {5, 7.0 / 36},
                                  {9, 9.0 / 36},
                                  {10, 11.0 / 36}});
  share_of(SliceStarts::kEpisodeStarts, {{2, 1.0 / 2}, {9, 1.0 / 2}});
  share_of(SliceStarts::kOnePerTrajectory, {{2, 1.0 / 8},
                                            {3, 1.0 / 8},
                                            {4, 1.0 / 8},
                                            {5, 1.0 / 8},
                                            {9, 1.0 / 4},
                                            {10, 1.0 / 4}});
}

TEST_F(SliceUnitTest, TrajectoriesMayBeTheAnchors) {
  const auto unit =
      MakeUnit({.length = 4, .starts = SliceStarts::kOnePerTrajectory});
  Store(unit.get(), 14, {2, 7, 5});
  ASSERT_EQ(unit->anchors().size(), 2);
  EXPECT_EQ(unit->anchors().At(0), 2);
  EXPECT_EQ(unit->anchors().At(1), 9);
  EXPECT_THAT(MakeSliceUnit({.length = 4,
                             .span_right = 1,
                             .starts = SliceStarts::kOnePerTrajectory})
                  .status(),
              IsInvalidArgument("span: got (0, 1), want (0, 0) where the "
                                "anchors are trajectories"));
}

TEST_F(SliceUnitTest, EpisodeStartsNeverBeginInATrajectoryThatIsCut) {
  const auto unit =
      MakeUnit({.length = 3, .starts = SliceStarts::kEpisodeStarts});
  Store(unit.get(), 10, {5, 4});
  storage_->Append(0, Episode(3));  // The first one loses two rows.
  std::set<Slot> starts;
  for (const auto& slice : SlicesOf(PlanOf(*unit, 300, 0))) {
    starts.insert(slice[0]);
  }
  EXPECT_THAT(starts, ElementsAre(5, 9));
}

TEST_F(SliceUnitTest, S17_ProducersThatTakeTurnsGiveSlicesOfOneInStepOrder) {
  const auto unit = MakeUnit({.length = 5});
  StorageModel storage({.count = 1, .capacity = 60}, {});
  storage.AddObserver(unit.get());
  std::vector<Value> rows;
  for (int64_t i = 0; i < 90; ++i) {
    rows.push_back({.is_end = i % 30 >= 27, .id = 3 * (i / 30) + i % 3});
  }
  for (const Value& row : rows) storage.Append(0, {row});
  std::set<Slot> starts;
  for (const auto& slice : SlicesOf(PlanOf(*unit, 5000, 0))) {
    starts.insert(slice[0]);
    // The ring has turned: slot 0 holds row 60.
    const auto row_of = [](Slot slot) { return slot < 30 ? slot + 60 : slot; };
    for (size_t i = 1; i < slice.size(); ++i) {
      ASSERT_EQ(row_of(slice[i]), row_of(slice[i - 1]) + 3);
      ASSERT_EQ(rows[row_of(slice[i])].id, rows[row_of(slice[0])].id);
    }
  }
  EXPECT_EQ(starts.size(), 36u);  // 6 trajectories of 10 rows.
}

TEST_F(SliceUnitTest, M2_SlicesOfLanesWithIds) {
  const auto unit = MakeUnit({.length = 3});
  StorageModel storage({.count = 2, .capacity = 5}, {.ends = false});
  storage.AddObserver(unit.get());
  storage.Append(0, std::vector<Value>(5, Value{.id = 0}));
  storage.Append(1, {{.id = 1}, {.id = 1}, {.id = 1}, {.id = 2}, {.id = 2}});
  std::set<std::vector<Slot>> seen;
  for (const auto& slice : SlicesOf(PlanOf(*unit, 600, 0))) seen.insert(slice);
  EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(1, 2, 3),
                                ElementsAre(2, 3, 4), ElementsAre(5, 6, 7)));
}

TEST_F(SliceUnitTest, M3_EachSliceOfALongRunOfEpisodesHasOneEnd) {
  const auto unit = MakeUnit({.length = 32});
  StorageModel storage({.count = 3, .capacity = 200}, {.ids = false});
  storage.AddObserver(unit.get());
  std::vector<int64_t> steps(3, 0);
  for (uint64_t rollout = 0; rollout < 50; ++rollout) {
    std::set<Slot> ends;
    storage.Append(0, 3, 50, [&](int64_t lane) {
      return Value{.is_end = ++steps[lane] % (31 + lane) == 0};
    });
    for (const auto& trajectory : storage.Trajectories()) {
      if (trajectory.is_closed) ends.insert(trajectory.slots.back());
    }
    for (const auto& slice : SlicesOf(PlanOf(*unit, 128, rollout))) {
      ASSERT_EQ(slice.size(), 32u);
      for (size_t i = 0; i + 1 < slice.size(); ++i) {
        EXPECT_EQ(ends.count(slice[i]), 0u);
      }
      EXPECT_GE(slice[0], 200);  // Those of lane 0 are too short.
    }
  }
}

TEST_F(SliceUnitTest, SlicesOfRandomHistoriesAreRowsOfOneTrajectory) {
  for (uint64_t number = 0; number < 120; ++number) {
    const SliceUnitOptions options = {
        .length = static_cast<int64_t>(number % 5) + 1,
        .is_strict = number % 2 == 0,
        .span_left = number % 7 == 0 ? static_cast<int64_t>(number % 5) : 0,
        .starts = number % 7 == 0 ? SliceStarts::kRecent : SliceStarts::kRows};
    const auto unit = MakeUnit(options);
    TrajectoryHistory history(number, /*max_capacity=*/20);
    history.model().AddObserver(unit.get());
    for (uint64_t step = 0; step < 60; ++step) {
      history.Step();
      if (!unit->CheckAnchors().ok()) {
        EXPECT_EQ(unit->anchors().size(), 0);
        continue;
      }
      for (int64_t n = 0; n < unit->anchors().size(); ++n) {
        EXPECT_TRUE(unit->anchors().Contains(unit->anchors().At(n)));
      }
      std::map<Slot, std::vector<Slot>> following;
      for (const auto& trajectory : history.model().Trajectories()) {
        for (size_t i = 0; i < trajectory.slots.size(); ++i) {
          following[trajectory.slots[i]] = {trajectory.slots.begin() + i,
                                            trajectory.slots.end()};
        }
      }
      for (const auto& slice :
           SlicesOf(PlanOf(*unit, 4 * options.length, step))) {
        const std::vector<Slot>& all = following[slice.at(0)];
        ASSERT_LE(slice.size(), all.size());
        EXPECT_TRUE(std::equal(slice.begin(), slice.end(), all.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace rill
