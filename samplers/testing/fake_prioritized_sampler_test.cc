// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/testing/fake_prioritized_sampler.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {

INSTANTIATE_SAMPLER_CONFORMANCE(
    FakePrioritized, {.make = [] { return MakeFakePrioritizedSampler(); },
                      .refuses_moved_rows = true});

namespace {

constexpr uint64_t kSeed = 11;

std::vector<double> Shares(const std::vector<double>& priorities,
                           double alpha) {
  double total = 0;
  for (double priority : priorities) total += std::pow(priority, alpha);
  std::vector<double> shares;
  for (double priority : priorities) {
    shares.push_back(std::pow(priority, alpha) / total);
  }
  return shares;
}

TEST(FakePrioritizedSamplerTest, DrawsFollowPriorities) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler =
      storage.Attach(MakeFakePrioritizedSampler({.alpha = 0.5, .beta = 1.0}));
  storage.Append(4);
  RILL_ASSERT_OK(sampler->UpdatePriorities(
      {{.slot = 0}, {.slot = 1}, {.slot = 2}, {.slot = 3}}, {1, 4, 0, 16}));
  EXPECT_THAT(CountDraws(*sampler, 4, 64, kSeed, 512),
              DistributedAs(Shares({1, 4, 0, 16}, 0.5), /*p_value=*/1e-9));
}

TEST(FakePrioritizedSamplerTest, WeightsUndoTheBias) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler =
      storage.Attach(MakeFakePrioritizedSampler({.alpha = 1.0, .beta = 0.5}));
  storage.Append(4);
  RILL_ASSERT_OK(sampler->UpdatePriorities({{.slot = 0}, {.slot = 1}}, {4, 9}));
  // P = 4, 9, 1, 1 of 15; the largest weight is that of the smallest P.
  const float want[] = {0.5f, 1.0f / 3.0f, 1.0f, 1.0f};
  for (const Draw& draw : PlanOf(*sampler, 64, kSeed, 0).draws) {
    EXPECT_FLOAT_EQ(draw.weight, want[draw.slot]) << draw.slot;
  }
}

TEST(FakePrioritizedSamplerTest, NewRowsHaveTheHighestPriorityEverGiven) {
  StorageSimulator storage({.count = 1, .capacity = 3});
  auto sampler = storage.Attach(MakeFakePrioritizedSampler({.alpha = 1.0}));
  storage.Append(2);
  RILL_ASSERT_OK(sampler->UpdatePriorities({{.slot = 0}, {.slot = 1}}, {8, 2}));
  RILL_ASSERT_OK(sampler->UpdatePriorities({{.slot = 0}}, {2}));
  storage.Append(1);
  EXPECT_THAT(CountDraws(*sampler, 3, 64, kSeed, 256),
              DistributedAs(Shares({2, 2, 8}, 1), /*p_value=*/1e-9));
}

TEST(FakePrioritizedSamplerTest, WriterMayGivePriorities) {
  StorageSimulator storage({.count = 2, .capacity = 2});
  auto sampler = storage.Attach(MakeFakePrioritizedSampler({.alpha = 1.0}));
  storage.Append(0, 2, 2, {1, 2, 3, 4});
  EXPECT_THAT(CountDraws(*sampler, 4, 64, kSeed, 256),
              DistributedAs(Shares({1, 2, 3, 4}, 1), /*p_value=*/1e-9));
}

TEST(FakePrioritizedSamplerTest, AllPrioritiesZeroIsAnError) {
  StorageSimulator storage({.count = 1, .capacity = 2});
  auto sampler = storage.Attach(MakeFakePrioritizedSampler());
  storage.Append(2);
  RILL_ASSERT_OK(sampler->UpdatePriorities({{.slot = 0}, {.slot = 1}}, {0, 0}));
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(sampler->Plan({.batch_size = 2}, &plan),
              IsFailedPrecondition("want > 0"));
  ExpectEqualPlans(plan, SentinelPlan());
}

}  // namespace
}  // namespace rill
