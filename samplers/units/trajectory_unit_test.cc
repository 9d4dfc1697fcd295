// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/trajectory_unit.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

constexpr double kFalseAlarms = 1e-9;
using Value = StorageModel::Value;

std::unique_ptr<Sampler> Make(const TrajectoryUnitOptions& options) {
  auto unit = *MakeTrajectoryUnit(options);
  return *MakeSampler(MakeUniformSelector(), std::move(unit), "Trajectories");
}

std::unique_ptr<Sampler> MakeAny() { return Make({}); }

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Trajectories, {.make = MakeAny,
                                               .plans = {.rows_per_item = 0}});

namespace {

// Episodes of 3 rows (cut by one), 2, 5 and an open one of 2 in a full ring.
class TrajectoryUnitTest : public ::testing::Test {
 protected:
  TrajectoryUnitTest()
      : storage_({.count = 1, .capacity = 11}, {.ids = false}) {
    storage_.Append(0, {{}, {}, {.is_end = true}, {}, {.is_end = true}});
    storage_.Append(0, {{}, {}, {}, {}, {.is_end = true}, {}, {}});
  }

  // The trajectories that a sampler draws, and how often each.
  std::set<std::vector<Slot>> Draw(Sampler& sampler,
                                   std::vector<int64_t>* counts) {
    storage_.AddObserver(sampler.observer());
    const SamplePlan plan = PlanOf(sampler, 3000, /*seed=*/7, 0);
    std::vector<std::vector<Slot>> drawn(plan.draws.size());
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      drawn[plan.segments[i]].push_back(plan.rows[i]);
    }
    const std::set<std::vector<Slot>> seen(drawn.begin(), drawn.end());
    for (const std::vector<Slot>& rows : seen) {
      counts->push_back(std::count(drawn.begin(), drawn.end(), rows));
    }
    return seen;
  }

  StorageModel storage_;
};

TEST_F(TrajectoryUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Unit> episodes,
                            MakeTrajectoryUnit({.only_complete = true}));
  storage_.AddObserver(episodes.get());
  EXPECT_EQ(episodes->anchors().size(), 2);
}

TEST_F(TrajectoryUnitTest, EachTrajectoryIsDrawnAsOftenWithAllItsRows) {
  std::vector<int64_t> counts;
  EXPECT_THAT(Draw(*MakeAny(), &counts),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4),
                          ElementsAre(5, 6, 7, 8, 9), ElementsAre(10, 0)));
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(4), kFalseAlarms));
}

TEST_F(TrajectoryUnitTest, CompleteOnesHaveTheirBeginningAndTheirEnd) {
  std::vector<int64_t> counts;
  EXPECT_THAT(Draw(*Make({.only_complete = true}), &counts),
              ElementsAre(ElementsAre(3, 4), ElementsAre(5, 6, 7, 8, 9)));
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(2), kFalseAlarms));
}

TEST_F(TrajectoryUnitTest, ShortOnesAreLeftOutAndLongOnesCut) {
  std::vector<int64_t> counts;
  EXPECT_THAT(Draw(*Make({.min_rows = 3, .max_rows = 4}), &counts),
              ElementsAre(ElementsAre(5, 6, 7, 8)));
}

TEST_F(TrajectoryUnitTest, SaysWhatThereIsWhereNoneFits) {
  const auto sampler =
      AttachTo(storage_, Make({.min_rows = 6, .only_complete = true}));
  SamplePlan plan;
  EXPECT_THAT(
      sampler->Plan({.batch_size = 1}, &plan),
      IsFailedPrecondition("Trajectories::Plan: trajectories: got 4 of 2 "
                           "to 5 rows, want one of 6 or more whose "
                           "beginning and end are stored"));
  EXPECT_THAT(MakeTrajectoryUnit({.min_rows = 0}).status(),
              IsInvalidArgument("min_rows: got 0, want >= 1"));
  EXPECT_THAT(MakeTrajectoryUnit({.min_rows = 3, .max_rows = 2}).status(),
              IsInvalidArgument("max_rows: got 2, want [min_rows, "));
}

TEST(TrajectoryUnitBoundTest, BatchHasAtMostSoManyRows) {
  constexpr int64_t kRows = int64_t{1} << 14;
  const auto sampler = Make({});
  const auto shorter = Make({.max_rows = kRows / 4});
  // Two trajectories, of kRows and of half as many.
  std::vector<uint8_t> ends(kRows + kRows / 2, 0);
  ends[kRows - 1] = 1;
  const SlotRange all = {.first = 0,
                         .count = static_cast<int64_t>(ends.size())};
  WriteEvent event;
  event.written = {&all, 1};
  event.ends = ends;
  const Cursor cursor;
  for (Sampler* const each : {sampler.get(), shorter.get()}) {
    each->observer()->OnAttach({.count = 1, .capacity = 2 * kRows},
                               {&cursor, 1});
    each->observer()->OnWrite(event);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto unit, MakeTrajectoryUnit({}));
  unit->OnAttach({.count = 1, .capacity = 2 * kRows}, {&cursor, 1});
  unit->OnWrite(event);
  EXPECT_THAT(unit->NumAnchors(1024), IsOkAndHolds(1024));
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = 8}, &plan));
  EXPECT_THAT(
      sampler->Plan({.batch_size = 1025}, &plan),
      IsInvalidArgument("batch size: got 1025, want [1, 1024] where "
                        "trajectories have up to 16384 rows, so that a batch "
                        "has at most 16777216 rows; lower it, or max_rows"));
  EXPECT_EQ(plan.draws.size(), 8u);
  RILL_ASSERT_OK(shorter->Plan({.batch_size = 1025}, &plan));
  EXPECT_THAT(shorter->Plan({.batch_size = 4097}, &plan),
              IsInvalidArgument("want [1, 4096]"));
}

TEST(TrajectoryUnitBoundTest, OnlyThoseThatCanBeDrawnCount) {
  constexpr int64_t kRows = int64_t{1} << 14;
  // A complete one of 2 rows, and an open one of many.
  std::vector<uint8_t> ends(2 + kRows, 0);
  ends[1] = 1;
  const SlotRange all = {.first = 0, .count = 2 + kRows};
  WriteEvent event;
  event.written = {&all, 1};
  event.ends = ends;
  const Cursor cursor;
  RILL_ASSERT_OK_AND_ASSIGN(const auto unit,
                            MakeTrajectoryUnit({.only_complete = true}));
  unit->OnAttach({.count = 1, .capacity = 2 * kRows}, {&cursor, 1});
  unit->OnWrite(event);
  EXPECT_THAT(unit->NumAnchors(1025), IsOkAndHolds(1025));
}

}  // namespace
}  // namespace rill
