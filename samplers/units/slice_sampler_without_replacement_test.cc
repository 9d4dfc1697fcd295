// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/slice_sampler_without_replacement.h"

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/units/plans_over_histories.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 20240722;
using Options = SliceSamplerWithoutReplacementOptions;

std::unique_ptr<Sampler> Make(const Options& options) {
  return *MakeSliceSamplerWithoutReplacement(options);
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Padded, {.make =
                                             [] {
                                               return Make({.length = 3,
                                                            .is_strict = false,
                                                            .is_padded = true});
                                             },
                                         .is_stateful = true,
                                         .plans = {.rows_per_item = 3}});
INSTANTIATE_SAMPLER_CONFORMANCE(
    StrictInOrder,
    {.make = [] { return Make({.length = 2, .shuffle = false}); },
     .is_stateful = true,
     .plans = {.rows_per_item = 2, .may_find_nothing = true}});

namespace {

class SliceSamplerWithoutReplacementTest : public ::testing::Test {
 protected:
  // Episodes of 5, 2, 4 and 6 rows; the last one goes on.
  SliceSamplerWithoutReplacementTest()
      : storage_({.count = 1, .capacity = 40}, {.ids = false}) {
    std::vector<StorageModel::Value> rows(17);
    for (const int last : {4, 6, 10}) rows[last].is_end = true;
    storage_.Append(0, rows);
  }

  StorageModel storage_;
};

TEST_F(SliceSamplerWithoutReplacementTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sampler> sampler,
                            MakeSliceSamplerWithoutReplacement({.length = 4}));
  storage_.AddObserver(sampler->observer());
  EXPECT_THAT(PlanOf(*sampler, 8, kSeed, 0).rows, SizeIs(8));
}

TEST_F(SliceSamplerWithoutReplacementTest, OneSliceOfEachTrajectoryAnEpoch) {
  const auto sampler = AttachTo(storage_, Make({.length = 4}));
  std::set<std::vector<Slot>> orders;
  std::vector<int64_t> counts(17, 0);
  for (uint64_t epoch = 0; epoch < 3000; ++epoch) {
    std::vector<Slot> order;
    for (uint64_t batch : {0, 1}) {
      const SamplePlan plan = PlanOf(*sampler, 8, kSeed, 2 * epoch + batch);
      ASSERT_THAT(plan.draws, SizeIs(batch == 0 ? 2 : 1));
      for (size_t i = 0; i < plan.draws.size(); ++i) {
        order.push_back(plan.draws[i].slot);
        const Slot first = plan.rows[4 * i];
        EXPECT_THAT(std::vector<Slot>(&plan.rows[4 * i], &plan.rows[4 * i] + 4),
                    ElementsAre(first, first + 1, first + 2, first + 3));
        ++counts[first];
      }
    }
    EXPECT_THAT(order, testing::UnorderedElementsAre(0, 7, 11));
    orders.insert(order);
  }
  EXPECT_THAT(orders, SizeIs(6));
  std::vector<double> wanted(17, 0.0);
  for (const int slot : {0, 1}) wanted[slot] = 1.0 / 6;
  wanted[7] = 1.0 / 3;
  for (const int slot : {11, 12, 13}) wanted[slot] = 1.0 / 9;
  EXPECT_THAT(counts, DistributedAs(wanted, 1e-9));
}

TEST_F(SliceSamplerWithoutReplacementTest, WhatComesWaitsForTheNextEpoch) {
  const auto sampler = AttachTo(storage_, Make({.length = 4}));
  std::vector<StorageModel::Value> episode(5);
  episode.back().is_end = true;
  std::vector<Slot> drawn;
  for (uint64_t batch = 0; batch < 8; ++batch) {
    drawn.push_back(PlanOf(*sampler, 4, kSeed, batch).draws.at(0).slot);
    // The first goes on with what is open.
    if (batch < 3) storage_.Append(0, episode);
  }
  EXPECT_THAT(std::vector<Slot>(drawn.begin(), drawn.begin() + 3),
              testing::UnorderedElementsAre(0, 7, 11));
  EXPECT_THAT(std::vector<Slot>(drawn.begin() + 3, drawn.end()),
              testing::UnorderedElementsAre(0, 7, 11, 22, 27));
}

TEST_F(SliceSamplerWithoutReplacementTest, LengthMayBeThatOfABatchsSlices) {
  auto sampler = AttachTo(storage_, Make({.num_slices = 2, .batch_size = 8}));
  const SamplePlan plan = PlanOf(*sampler, 8, kSeed, 0);
  EXPECT_THAT(plan.draws, SizeIs(2));
  EXPECT_THAT(plan.rows, SizeIs(8));
}

TEST_F(SliceSamplerWithoutReplacementTest, OrderAndLastBatchAreOptions) {
  const auto sampler = AttachTo(
      storage_, Make({.length = 4, .is_strict = false, .shuffle = false}));
  const SamplePlan plan = PlanOf(*sampler, 12, kSeed, 0);
  EXPECT_EQ(plan.draws[0].slot, 0);
  EXPECT_EQ(plan.draws[1].slot, 5);  // The short one is a slice as it is.
  EXPECT_EQ(plan.draws[2].slot, 7);
  EXPECT_THAT(plan.rows, SizeIs(10));
  EXPECT_THAT(PlanOf(*sampler, 12, kSeed, 1).draws, SizeIs(1));

  const auto whole = AttachTo(storage_, Make({.length = 4, .drop_last = true}));
  for (uint64_t batch = 0; batch < 4; ++batch) {
    EXPECT_THAT(PlanOf(*whole, 8, kSeed, batch).draws, SizeIs(2));
  }
  SamplePlan none;
  EXPECT_THAT(whole->Plan({.batch_size = 16, .seed = kSeed}, &none),
              IsFailedPrecondition("items of an epoch: got 3, want >= 4"));
}

TEST_F(SliceSamplerWithoutReplacementTest, SlicesOfRandomHistoriesAreOfOne) {
  ForPlansOverHistories(
      60, 12, [] { return Make({.length = 3, .is_strict = false}); },
      [](const SamplePlan* plan, const RowsOfTrajectories& rows) {
        if (plan == nullptr) return;
        std::set<Slot> drawn;
        for (size_t k = 0; k < plan->rows.size(); ++k) {
          const Slot pick = plan->draws.at(plan->segments[k]).slot;
          drawn.insert(pick);
          EXPECT_EQ(rows.OffsetOf(pick), 0);
          EXPECT_EQ(&rows.TrajectoryOf(plan->rows[k]),
                    &rows.TrajectoryOf(pick));
          if (k > 0 && plan->segments[k] == plan->segments[k - 1]) {
            EXPECT_EQ(rows.OffsetOf(plan->rows[k]),
                      rows.OffsetOf(plan->rows[k - 1]) + 1);
          }
        }
        EXPECT_EQ(drawn.size(), plan->draws.size());
      });
}

}  // namespace
}  // namespace rill
