// SPDX-License-Identifier: Apache-2.0
// Selectors over a unit whose anchors come and go without their rows.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/units/slice_unit.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> OverPairs(std::unique_ptr<Selector> selector) {
  return *MakeSampler(std::move(selector), *MakeSliceUnit({.length = 2}),
                      "Pairs");
}

std::unique_ptr<Selector> MakeMixture() {
  std::vector<MixturePart> parts;
  parts.push_back({.selector = MakeStalenessSelector(), .share = 1});
  parts.push_back({.selector = MakeWithoutReplacementSelector(), .share = 1});
  return *MakeMixtureSelector(std::move(parts));
}

constexpr PlanForm kPairs = {.rows_per_item = 2, .may_find_nothing = true};

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(
    Fifo, {.make = [] { return OverPairs(MakeFifoSelector()); },
           .is_random = false,
           .plans = kPairs});
INSTANTIATE_SAMPLER_CONFORMANCE(
    MaxHeap, {.make = [] { return OverPairs(*MakeMaxHeapSelector()); },
              .is_random = false,
              .plans = kPairs});
INSTANTIATE_SAMPLER_CONFORMANCE(
    Staleness, {.make = [] { return OverPairs(MakeStalenessSelector()); },
                .plans = kPairs});
INSTANTIATE_SAMPLER_CONFORMANCE(
    WithoutReplacement,
    {.make = [] { return OverPairs(MakeWithoutReplacementSelector()); },
     .is_stateful = true,
     .plans = kPairs});
INSTANTIATE_SAMPLER_CONFORMANCE(Consuming,
                                {.make =
                                     [] {
                                       return OverPairs(*MakeConsumingSelector(
                                           {.max_times_sampled = 1000}));
                                     },
                                 .is_stateful = true,
                                 .plans = kPairs});
INSTANTIATE_SAMPLER_CONFORMANCE(
    Mixture, {.make = [] { return OverPairs(MakeMixture()); },
              .is_stateful = true,
              .plans = kPairs});

namespace {

using ::testing::ElementsAre;

// Steps 6 and 13 end episodes: no pair begins there.
TEST(SelectorsOverSlicesTest, EveryStartOnceAnEpoch) {
  StorageSimulator storage({.count = 1, .capacity = 16});
  auto sampler = storage.Attach(OverPairs(MakeWithoutReplacementSelector()));
  storage.Append(16);
  std::vector<Slot> starts;
  for (uint64_t batch = 0; batch < 4; ++batch) {
    for (const Slot slot : DrawnSlots(*sampler, 8, 1, batch)) {
      starts.push_back(slot);
    }
  }
  EXPECT_EQ(starts.size(), 13u);
  EXPECT_THAT(std::set<Slot>(starts.begin(), starts.end()),
              ElementsAre(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14));
}

// Slices of 5 begin at fewer than half of the slots: the epoch is a list.
TEST(SelectorsOverSlicesTest, ClearingGivesUpTheListOfAnEpoch) {
  StorageSimulator storage({.count = 1, .capacity = 14});
  auto sampler =
      storage.Attach(*MakeSampler(MakeWithoutReplacementSelector(),
                                  *MakeSliceUnit({.length = 5}), "Fives"));
  storage.Append(14);
  EXPECT_EQ(PlanOf(*sampler, 20, 1, 0).draws.size(), 4u);
  storage.Clear();
  storage.Append(14);
  const std::vector<Slot> starts = DrawnSlots(*sampler, 30, 1, 1);
  EXPECT_THAT(std::set<Slot>(starts.begin(), starts.end()),
              ElementsAre(0, 1, 2, 7, 8, 9));
}

TEST(SelectorsOverSlicesTest, QueueOfSlicesGoesOnAsRowsFollow) {
  StorageSimulator storage({.count = 1, .capacity = 16});
  auto sampler = storage.Attach(
      OverPairs(*MakeConsumingSelector({.inner = MakeFifoSelector()})));
  storage.Append(3);
  EXPECT_THAT(PlanOf(*sampler, 8, 1, 0).rows, ElementsAre(0, 1, 1, 2));
  storage.Append(2);
  EXPECT_THAT(PlanOf(*sampler, 8, 1, 1).rows, ElementsAre(2, 3, 3, 4));
}

}  // namespace
}  // namespace rill
