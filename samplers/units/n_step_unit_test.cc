// SPDX-License-Identifier: Apache-2.0
// Names like T3 are those of the peer's behaviours that a test repeats.
#include "rill/samplers/units/n_step_unit.h"

#include <algorithm>
#include <cstdint>
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
#include "rill/samplers/trajectories/trajectory_model.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<Sampler> Over(std::unique_ptr<Selector> selector,
                              int64_t steps = 3) {
  return *MakeSampler(std::move(selector), *MakeNStepUnit({.steps = steps}),
                      "NStep");
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
     .is_stateful = true,
     .plans = {.may_be_short = true}});

namespace {

// Each draw's row with its window, by the row.
std::map<Slot, std::vector<Slot>> WindowsOf(const SamplePlan& plan) {
  std::map<Slot, std::vector<Slot>> windows;
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    std::vector<Slot>& window = windows[plan.draws[i].slot];
    window = {plan.draws[i].slot};
    const SamplePlan::Context& following = plan.context[0];
    for (size_t k = 0; k < following.rows.size(); ++k) {
      if (following.segments[k] != static_cast<int64_t>(i)) continue;
      window.push_back(following.rows[k]);
    }
  }
  return windows;
}

TEST(NStepUnitTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Unit> unit,
                            MakeNStepUnit({.steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sampler,
      MakeSampler(MakeUniformSelector(), std::move(unit), "NStep"));
  TrajectoryModel storage({.count = 1, .capacity = 4}, {.ids = false});
  storage.AddObserver(sampler->observer());
  storage.Append(0, {{}, {}, {}, {.is_end = true}});
  const SamplePlan plan = PlanOf(*sampler, 100, 1, 0);
  EXPECT_THAT(plan.rows, IsEmpty());
  for (const auto& [slot, window] : WindowsOf(plan)) {
    EXPECT_THAT(window, SizeIs(std::min<int64_t>(3, 4 - slot)));
  }
}

// Rows 0 .. 2 end an episode, 3 and 4 are of one that goes on.
TEST(NStepUnitTest, T3_WindowsEndWithTheirEpisodeAndAtTheNewestRow) {
  TrajectoryModel storage({.count = 1, .capacity = 8}, {.ids = false});
  const auto two = Over(MakeUniformSelector(), 2);
  const auto one = Over(MakeUniformSelector(), 1);
  storage.AddObserver(two->observer());
  storage.AddObserver(one->observer());
  storage.Append(0, {{}, {}, {.is_end = true}, {}, {}});
  EXPECT_THAT(WindowsOf(PlanOf(*two, 200, 1, 0)),
              ElementsAre(testing::Pair(0, ElementsAre(0, 1)),
                          testing::Pair(1, ElementsAre(1, 2)),
                          testing::Pair(2, ElementsAre(2)),
                          testing::Pair(3, ElementsAre(3, 4)),
                          testing::Pair(4, ElementsAre(4))));
  const SamplePlan plan = PlanOf(*one, 200, 1, 0);
  EXPECT_THAT(plan.context[0].rows, IsEmpty());
  ASSERT_THAT(plan.context[1].rows, SizeIs(200));
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(plan.context[1].rows[i], plan.draws[i].slot);
  }
}

TEST(NStepUnitTest, DrawsTheRowsOfAUniformSampler) {
  const auto sampler = Over(MakeUniformSelector());
  ExpectDrawsOfAUniformSampler(sampler.get());
}

TEST(NStepUnitTest, WindowsOfRandomHistoriesAreRowsOfOneTrajectory) {
  for (const int64_t steps : {2, 5}) {
    ForPlansOverHistories(
        60, 16, [&] { return Over(MakeUniformSelector(), steps); },
        [&](const SamplePlan* plan, const RowsOfTrajectories& rows) {
          ASSERT_EQ(plan == nullptr, rows.all().empty());
          if (plan == nullptr) return;
          EXPECT_THAT(plan->rows, IsEmpty());
          std::vector<Slot> following, last;
          std::vector<int64_t> segments;
          for (size_t i = 0; i < plan->draws.size(); ++i) {
            const Slot slot = plan->draws[i].slot;
            const std::vector<Slot>& all = rows.TrajectoryOf(slot);
            const size_t first = rows.OffsetOf(slot);
            const size_t end = std::min(all.size(), first + steps);
            following.insert(following.end(), all.begin() + first + 1,
                             all.begin() + end);
            segments.resize(following.size(), static_cast<int64_t>(i));
            last.push_back(all[end - 1]);
            EXPECT_EQ(plan->context[1].segments.at(i), static_cast<int64_t>(i));
          }
          ASSERT_THAT(plan->context, SizeIs(2));
          EXPECT_EQ(plan->context[0].rows, following);
          EXPECT_EQ(plan->context[0].segments, segments);
          EXPECT_THAT(plan->context[0].mask, IsEmpty());
          EXPECT_EQ(plan->context[1].rows, last);
          EXPECT_THAT(plan->context[1].mask, IsEmpty());
        });
  }
}

TEST(NStepUnitTest, StepsOutOfRangeAreRefused) {
  EXPECT_THAT(MakeNStepUnit({.steps = 0}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "MakeNStepUnit: steps: got 0, want [1, 16777216]"));
  EXPECT_THAT(MakeNStepUnit({.steps = INT64_MAX}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill
