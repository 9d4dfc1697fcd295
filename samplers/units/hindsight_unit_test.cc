// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/hindsight_unit.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 20240722;
constexpr double kFalseAlarms = 1e-9;
constexpr HindsightStrategy kStrategies[] = {
    HindsightStrategy::kFuture, HindsightStrategy::kFinal,
    HindsightStrategy::kEpisode, HindsightStrategy::kRandom};

std::unique_ptr<Sampler> Over(std::unique_ptr<Selector> selector,
                              const HindsightUnitOptions& options = {}) {
  return *MakeSampler(std::move(selector), *MakeHindsightUnit(options),
                      "Hindsight");
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Uniform, {.make = [] {
                                  return Over(MakeUniformSelector());
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(Prioritized, {.make = [] {
                                  return Over(*PrioritizedSelector::Create({}));
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(
    WithoutReplacement,
    {.make = [] { return Over(MakeWithoutReplacementSelector()); },
     .is_stateful = true});
INSTANTIATE_SAMPLER_CONFORMANCE(Random, {.make = [] {
                                  return Over(
                                      MakeUniformSelector(),
                                      {.strategy = HindsightStrategy::kRandom});
                                }});

namespace {

TEST(HindsightUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Unit> unit,
                            MakeHindsightUnit({.ratio = 0.5}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      MakeSampler(MakeUniformSelector(), std::move(unit), "Hindsight"));
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  storage.AddObserver(sampler->observer());
  storage.Append(0, std::vector<StorageModel::Value>(8));
  const SamplePlan plan = PlanOf(*sampler, 1000, kSeed, 0);
  EXPECT_THAT(plan.rows, IsEmpty());
  const auto relabelled = static_cast<int64_t>(plan.context[0].segments.size());
  EXPECT_THAT((std::vector<int64_t>{relabelled, 1000 - relabelled}),
              DistributedAs(UniformProbabilities(2), kFalseAlarms));
}

// Which rows may be the goal of one, each with the same probability.
std::vector<Slot> GoalsOf(HindsightStrategy strategy,
                          const RowsOfTrajectories& rows, Slot slot) {
  const std::vector<Slot>& all = rows.TrajectoryOf(slot);
  switch (strategy) {
    case HindsightStrategy::kFuture:
      return {all.begin() + rows.OffsetOf(slot), all.end()};
    case HindsightStrategy::kFinal:
      return {all.back()};
    case HindsightStrategy::kEpisode:
      return all;
    case HindsightStrategy::kRandom:
      return rows.all();
  }
  return {};
}

// Episodes of 3 rows (cut by one), 2, 4 and an open one of 3 in a full ring,
// and a lane of 2 rows.
TEST(HindsightUnitTest, GoalsAreDistributedAsTheStrategySays) {
  for (const HindsightStrategy strategy : kStrategies) {
    SCOPED_TRACE(static_cast<int>(strategy));
    StorageModel storage({.count = 2, .capacity = 11}, {.ids = false});
    const auto sampler = AttachTo(
        storage,
        Over(MakeUniformSelector(), {.strategy = strategy, .ratio = 0.75}));
    storage.Append(0, {{}, {}, {.is_end = true}, {}, {.is_end = true}});
    storage.Append(0, {{}, {}, {}, {.is_end = true}, {}, {}, {}});
    storage.Append(1, {{}, {}});
    const RowsOfTrajectories rows(storage);
    ASSERT_THAT(rows.all(), SizeIs(13));
    // By draw and goal; goal -1: none.
    std::map<std::pair<Slot, Slot>, int64_t> counts;
    std::map<std::pair<Slot, Slot>, double> shares;
    for (const Slot slot : rows.all()) {
      const std::vector<Slot> goals = GoalsOf(strategy, rows, slot);
      shares[{slot, -1}] = 0.25 / 13;
      for (const Slot goal : goals) {
        shares[{slot, goal}] =
            0.75 / (13.0 * static_cast<double>(goals.size()));
      }
    }
    for (const auto& [key, share] : shares) counts[key] = 0;
    for (uint64_t batch = 0; batch < 100; ++batch) {
      const SamplePlan plan = PlanOf(*sampler, 1000, kSeed, batch);
      const SamplePlan::Context& goals = plan.context[0];
      size_t next = 0;
      for (size_t i = 0; i < plan.draws.size(); ++i) {
        const bool has_goal = next < goals.segments.size() &&
                              goals.segments[next] == static_cast<int64_t>(i);
        ++counts[{plan.draws[i].slot, has_goal ? goals.rows[next] : -1}];
        if (has_goal) ++next;
      }
      ASSERT_EQ(next, goals.rows.size());
    }
    std::vector<int64_t> seen;
    std::vector<double> wanted;
    for (const auto& [key, count] : counts) {
      seen.push_back(count);
      wanted.push_back(shares.count(key) > 0 ? shares[key] : 0.0);
    }
    EXPECT_THAT(seen, DistributedAs(wanted, kFalseAlarms));
  }
}

TEST(HindsightUnitTest, RatioSaysHowManyDrawsGetAnotherGoal) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  storage.Append(0, std::vector<StorageModel::Value>(8));
  const auto none =
      AttachTo(storage, Over(MakeUniformSelector(), {.ratio = 0}));
  const auto all = AttachTo(storage, Over(MakeUniformSelector(), {.ratio = 1}));
  EXPECT_THAT(PlanOf(*none, 1000, kSeed, 0).context[0].rows, IsEmpty());
  EXPECT_THAT(PlanOf(*all, 1000, kSeed, 0).context[0].rows, SizeIs(1000));
  for (const double bad :
       {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(MakeHindsightUnit({.ratio = bad}).status(),
                IsInvalidArgument("MakeHindsightUnit: ratio: got "));
  }
}

TEST(HindsightUnitTest, GoalsOfRandomHistoriesAreThoseOfTheStrategy) {
  for (const HindsightStrategy strategy : kStrategies) {
    ForPlansOverHistories(
        40, 16,
        [&] { return Over(MakeUniformSelector(), {.strategy = strategy}); },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          ASSERT_EQ(plan == nullptr, rows.all().empty());
          if (plan == nullptr) return;
          EXPECT_THAT(plan->rows, IsEmpty());
          ASSERT_THAT(plan->context, SizeIs(1));
          const SamplePlan::Context& goals = plan->context[0];
          ASSERT_EQ(goals.segments.size(), goals.rows.size());
          EXPECT_THAT(goals.mask, IsEmpty());
          for (size_t k = 0; k < goals.rows.size(); ++k) {
            if (k > 0) {
              EXPECT_LT(goals.segments[k - 1], goals.segments[k]);
            }
            EXPECT_THAT(
                GoalsOf(strategy, rows, plan->draws.at(goals.segments[k]).slot),
                testing::Contains(goals.rows[k]));
          }
        });
  }
}

}  // namespace
}  // namespace rill
