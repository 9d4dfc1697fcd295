// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized_slice_sampler.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> Make(const PrioritizedOptions& priorities,
                              const SliceUnitOptions& slices) {
  return *MakePrioritizedSliceSampler(priorities, slices);
}

std::unique_ptr<Sampler> MakePairs() { return Make({}, {.length = 2}); }

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(PrioritizedSlices,
                                {.make = MakePairs,
                                 .plans = {.rows_per_item = 2,
                                           .may_find_nothing = true}});

namespace {

TEST(PrioritizedSliceSamplerTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<Sampler> sampler,
      MakePrioritizedSliceSampler({.alpha = 0.7}, {.length = 4}));
  EXPECT_TRUE(sampler->traits().is_weighted);
  EXPECT_THAT(MakePrioritizedSliceSampler(
                  {}, {.length = 4, .starts = SliceStarts::kRecent})
                  .status(),
              IsInvalidArgument("starts: got another rule"));
}

// Starts with priorities 1, 2, 3 (row 2 was given 100 and starts nothing).
TEST(PrioritizedSliceSamplerTest, StartsAreDrawnByTheirPriorities) {
  StorageModel storage({.count = 1, .capacity = 8}, {.ids = false});
  const auto sampler = AttachTo(
      storage,
      Make({.alpha = 1.0, .beta = 1.0, .epsilon = 0.0}, {.length = 3}));
  storage.Append(0, {{}, {}, {}, {.is_end = true}, {}, {}, {.is_end = true}});
  std::vector<Draw> draws;
  for (const Slot slot : {0, 1, 2, 4}) draws.push_back({.slot = slot});
  RILL_ASSERT_OK(sampler->UpdatePriorities(draws, {1, 2, 100, 3}));
  const SamplePlan plan = PlanOf(*sampler, 30000, /*seed=*/3, 0);
  std::vector<int64_t> counts(8, 0);
  for (size_t i = 0; i < plan.draws.size(); ++i) {
    const Draw& draw = plan.draws[i];
    ++counts[draw.slot];
    EXPECT_EQ(plan.rows[3 * i], draw.slot);
    EXPECT_EQ(plan.rows[3 * i + 2], draw.slot + 2);
    const float priority = draw.slot == 4 ? 3.0f : draw.slot + 1.0f;
    EXPECT_FLOAT_EQ(draw.weight, 1.0f / priority);
  }
  EXPECT_THAT(counts, DistributedAs({1 / 6.0, 2 / 6.0, 0, 0, 3 / 6.0, 0, 0, 0},
                                    /*p_value=*/1e-9));
  // A row that starts something by a later write has what it was given.
  storage.WriteInPlace({3}, {{}}, {.ids = false});
  int64_t of_row_2 = 0;
  for (const Draw& draw : PlanOf(*sampler, 3000, 3, 1).draws) {
    of_row_2 += draw.slot == 2 ? 1 : 0;
  }
  EXPECT_GT(of_row_2, 300);
}

// S1 and what follows from it: whatever is written, a slice is whole.
TEST(PrioritizedSliceSamplerTest, SlicesOfRandomHistoriesAreWhole) {
  for (uint64_t number = 0; number < 60; ++number) {
    const int64_t length = static_cast<int64_t>(number % 4) + 1;
    const auto sampler = Make({}, {.length = length});
    TrajectoryHistory history(number, /*max_capacity=*/20);
    history.model().AddObserver(sampler->observer());
    for (uint64_t step = 0; step < 60; ++step) {
      history.Step();
      std::map<Slot, std::vector<Slot>> slice_at;
      for (const auto& trajectory : history.model().Trajectories()) {
        const auto rows = static_cast<int64_t>(trajectory.slots.size());
        for (int64_t i = 0; i + length <= rows; ++i) {
          slice_at[trajectory.slots[i]] = {
              trajectory.slots.begin() + i,
              trajectory.slots.begin() + i + length};
        }
      }
      SamplePlan plan;
      const absl::Status status = sampler->Plan(
          {.batch_size = 8 * length, .seed = number, .batch_number = step},
          &plan);
      ASSERT_EQ(status.ok(), !slice_at.empty()) << status;
      if (!status.ok()) continue;
      for (size_t i = 0; i < plan.draws.size(); ++i) {
        const auto first = plan.rows.begin() + i * length;
        ASSERT_EQ(std::vector<Slot>(first, first + length),
                  slice_at[plan.draws[i].slot])
            << "history " << number << " step " << step;
      }
      RILL_ASSERT_OK(
          sampler->UpdatePriorities(plan.draws, PrioritiesFor(plan, step)));
    }
  }
}

}  // namespace
}  // namespace rill
