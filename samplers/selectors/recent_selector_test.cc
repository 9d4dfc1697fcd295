// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/recent_selector.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/testing/chi_square.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> OverSlices() {
  return *MakeSampler(
      MakeRecentSelector(),
      *MakeSliceUnit({.length = 2, .starts = SliceStarts::kRows}), "Slices");
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Recent, {.make = MakeRecentSampler});
INSTANTIATE_SAMPLER_CONFORMANCE(RecentSlices,
                                {.make = OverSlices,
                                 .plans = {.rows_per_item = 2,
                                           .may_find_nothing = true}});

namespace {

constexpr uint64_t kSeed = 20240722;

TEST(RecentSelectorTest, Example) {
  StorageSimulator storage({.count = 1, .capacity = 8});
  std::unique_ptr<Sampler> sampler = storage.Attach(MakeRecentSampler());
  storage.Append(8);
  EXPECT_EQ(PlanOf(*sampler, 32, kSeed, 0).draws.size(), 32u);
}

// The pairs of picks by the plain words of the header, whatever the cursor and
// however the lanes differ.
// A writer that puts rows in others' places would mislead it.
TEST(RecentSelectorTest, WhatHoldsOneNeedsTheOrderOfRowsToo) {
  EXPECT_TRUE(MakeRecentSelector()->traits().needs_order);
  std::vector<MixturePart> parts;
  parts.push_back({.selector = MakeUniformSelector(), .share = 1});
  parts.push_back({.selector = MakeRecentSelector(), .share = 1});
  EXPECT_TRUE((*MakeMixtureSelector(std::move(parts)))->traits().needs_order);
  EXPECT_TRUE((*MakeConsumingSelector({.inner = MakeRecentSelector()}))
                  ->traits()
                  .needs_order);
  EXPECT_FALSE((*MakeConsumingSelector())->traits().needs_order);
}

TEST(RecentSelectorTest, TheYoungerOfTwoIsDrawn) {
  for (const int64_t steps : {4, 10, 13, 25}) {
    StorageSimulator storage({.count = 2, .capacity = 10});
    const auto sampler = storage.Attach(MakeRecentSampler());
    storage.Append(0, 1, steps);
    storage.Append(1, 1, 3);
    std::vector<Slot> live;
    std::vector<int64_t> ages;
    for (const Slot slot : storage.Live()) {
      const int64_t written = slot < 10 ? steps : 3;
      live.push_back(slot);
      ages.push_back(((written - 1 - slot % 10) % 10 + 10) % 10);
    }
    const auto n = static_cast<double>(live.size());
    std::vector<double> wanted(20, 0.0);
    for (size_t a = 0; a < live.size(); ++a) {
      for (size_t b = 0; b < live.size(); ++b) {
        wanted[live[ages[b] < ages[a] ? b : a]] += 1.0 / (n * n);
      }
    }
    EXPECT_THAT(CountDraws(*sampler, 20, 1000, kSeed, /*batches=*/100),
                DistributedAs(wanted, 1e-9))
        << steps;
  }
}

TEST(RecentSelectorTest, OfOneLaneTheSharesGrowEvenly) {
  StorageSimulator storage({.count = 1, .capacity = 5});
  const auto sampler = storage.Attach(MakeRecentSampler());
  storage.Append(7);  // Oldest first: slots 2, 3, 4, 0, 1.
  EXPECT_THAT(
      CountDraws(*sampler, 5, 50'000, kSeed, /*batches=*/1),
      DistributedAs({7.0 / 25, 9.0 / 25, 1.0 / 25, 3.0 / 25, 5.0 / 25}, 1e-9));
}

}  // namespace
}  // namespace rill
