// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/mixture_selector.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr uint64_t kSeed = 53;

// Keeps the reading of tests short: shares, then selectors.
template <typename... Selectors>
std::unique_ptr<Sampler> Mix(const std::vector<double>& shares,
                             Selectors... selectors) {
  std::vector<MixturePart> parts;
  (parts.push_back(
       {.selector = std::move(selectors), .share = shares[parts.size()]}),
   ...);
  return *MakeSampler(*MakeMixtureSelector(std::move(parts)),
                      MakeTransitionUnit(), "Mixture");
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Mixture,
                                {.make =
                                     [] {
                                       return Mix(
                                           {2, 1, 1}, MakeUniformSelector(),
                                           *MakeMaxHeapSelector(),
                                           MakeWithoutReplacementSelector());
                                     },
                                 .is_stateful = true});

// Parts that use rows up: those that the queue has passed are drawn once more.
INSTANTIATE_SAMPLER_CONFORMANCE(
    MixtureOfConsuming,
    {.make =
         [] {
           return Mix({1, 1},
                      *MakeConsumingSelector({.max_times_sampled = 1000,
                                              .inner = MakeFifoSelector()}),
                      *MakeConsumingSelector({.max_times_sampled = 1000}));
         },
     .is_stateful = true});

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Slot> Take(Sampler& sampler, int64_t batch_size) {
  return DrawnSlots(sampler, batch_size, kSeed);
}

TEST(MixtureSelectorTest, Example) {
  std::vector<MixturePart> parts;
  parts.push_back({.selector = MakeUniformSelector(), .share = 0.75});
  parts.push_back({.selector = MakeLifoSelector(), .share = 0.25});
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Selector> selector,
                            MakeMixtureSelector(std::move(parts)));
  EXPECT_EQ(selector->name(), "Mixture");
}

TEST(MixtureSelectorTest, SharesAreExactAndRestsGoToTheLargestRemainders) {
  struct Case {
    std::vector<double> shares;
    int64_t batch_size;
    std::vector<int64_t> want;
  };
  for (const Case& c : std::vector<Case>{
           {{0.5, 0.25, 0.25}, 8, {4, 2, 2}},
           {{0.5, 0.25, 0.25}, 10, {5, 3, 2}},  // Equal ones: the earlier.
           {{0.1, 0.2, 0.7}, 10, {1, 2, 7}},
           {{0.1, 0.2, 0.7}, 1'000'000, {100'000, 200'000, 700'000}},
           {{1, 1, 1}, 3, {1, 1, 1}},
           {{1, 1, 1}, 10, {4, 3, 3}},
           {{1, 1, 1}, 11, {4, 4, 3}},
           // Equal remainders whose roundings are not.
           {{0.05, 0.15, 0.8}, 32, {2, 5, 25}},
           {{0.05, 0.55, 0.4}, 8, {1, 4, 3}},
           {{1, 4, 1}, 10, {2, 7, 1}},
           {{1, 7, 1}, 3, {1, 2, 0}},
           {{0.05, 0.05, 0.9}, 1, {0, 0, 1}},
           {{0.46, 0.08, 0.46}, 4, {2, 0, 2}},
           {{1e-9, 1e9, 1e-9}, 7, {0, 7, 0}}}) {
    // Three parts that can be told from one another by their draws.
    StorageSimulator storage({.count = 1, .capacity = 9});
    auto sampler =
        storage.Attach(Mix(c.shares, MakeFifoSelector(), MakeLifoSelector(),
                           *MakeMaxHeapSelector()));
    storage.Append(1);
    storage.Append(0, 1, 1, {9});
    storage.Append(1);
    std::vector<Slot> want;
    const std::vector<std::vector<Slot>> orders = {
        {0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    for (size_t part = 0; part < 3; ++part) {
      for (int64_t i = 0; i < c.want[part]; ++i) {
        want.push_back(orders[part][i % 3]);
      }
    }
    EXPECT_EQ(Take(*sampler, c.batch_size), want) << c.batch_size;
  }
}

TEST(MixtureSelectorTest, PartsDrawIndependently) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler =
      storage.Attach(Mix({1, 1}, MakeUniformSelector(), MakeUniformSelector()));
  storage.Append(6);
  std::vector<int64_t> pairs(36, 0);
  for (uint64_t batch = 0; batch < 512; ++batch) {
    const SamplePlan plan = PlanOf(*sampler, 64, kSeed, batch);
    for (size_t i = 0; i < 32; ++i) {
      ++pairs[plan.draws[i].slot * 6 + plan.draws[32 + i].slot];
    }
  }
  EXPECT_THAT(pairs, DistributedAs(UniformProbabilities(36), 1e-9));
}

TEST(MixtureSelectorTest, PrioritiesReachThePartsThatGoByThem) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler =
      storage.Attach(Mix({1, 1}, MakeFifoSelector(), *MakeMaxHeapSelector()));
  storage.Append(6);
  RILL_ASSERT_OK(sampler->UpdatePriorities({{.slot = 4}}, {7}));
  EXPECT_THAT(Take(*sampler, 4), ElementsAre(0, 1, 4, 0));
}

TEST(MixtureSelectorTest, WhereOnePartFailsNoneMovesOn) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  int64_t current = 9;
  auto sampler = Mix(
      {1, 1}, *MakeConsumingSelector({.inner = MakeFifoSelector()}),
      MakeStalenessSelector({.max_staleness = 3, .current_version = [&current] {
                               return current;
                             }}));
  storage.AddObserver(sampler->observer());
  storage.Append(6);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before, sampler->SaveState());
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(sampler->Plan({.batch_size = 4}, &plan),
              IsFailedPrecondition("part 1 of the mixture, Staleness"));
  ExpectEqualPlans(plan, SentinelPlan());
  EXPECT_THAT(sampler->SaveState(), IsOkAndHolds(before));
  current = 0;
  const std::vector<Slot> slots = Take(*sampler, 4);
  EXPECT_EQ(slots[0], 0);
  EXPECT_EQ(slots[1], 1);
}

TEST(MixtureSelectorTest, PartsAreAskedOnceAPlan) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  int64_t versions_asked = 0;
  int64_t weights_asked = 0;
  auto sampler = Mix({1, 1}, MakeUniformSelector(),
                     MakeStalenessSelector({.weight =
                                                [&](int64_t) {
                                                  ++weights_asked;
                                                  return 1.0;
                                                },
                                            .current_version =
                                                [&] {
                                                  ++versions_asked;
                                                  return 0;
                                                }}));
  storage.AddObserver(sampler->observer());
  storage.Append(6);
  Take(*sampler, 4);
  EXPECT_EQ(versions_asked, 1);
  EXPECT_EQ(weights_asked, 1);  // All rows are of one version.
}

TEST(MixtureSelectorTest, EpochsOfPartsAreInOrdersOfTheirOwn) {
  StorageSimulator storage({.count = 1, .capacity = 32});
  std::vector<MixturePart> inner;
  for (int i = 0; i < 2; ++i) {
    inner.push_back({.selector = MakeWithoutReplacementSelector(), .share = 1});
  }
  auto sampler = storage.Attach(Mix({1, 1, 2}, MakeWithoutReplacementSelector(),
                                    MakeWithoutReplacementSelector(),
                                    *MakeMixtureSelector(std::move(inner))));
  storage.Append(32);
  const std::vector<Slot> slots = Take(*sampler, 128);
  std::set<std::vector<Slot>> orders;
  for (auto first = slots.begin(); first != slots.end(); first += 32) {
    const std::vector<Slot> order(first, first + 32);
    EXPECT_THAT(order, ::testing::UnorderedElementsAreArray(storage.Live()));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST(MixtureSelectorTest, PartThatGetsNoDrawNeedsNone) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler =
      Mix({0.9, 0.1}, MakeFifoSelector(),
          MakeStalenessSelector(
              {.max_staleness = 0, .current_version = [] { return 5; }}));
  storage.AddObserver(sampler->observer());
  storage.Append(6);
  EXPECT_THAT(Take(*sampler, 3), ElementsAre(0, 1, 2));
}

std::vector<Slot> UsedUp(const Sampler& sampler) {
  std::vector<Slot> slots;
  const int64_t count = sampler.AddUsedUp(0, nullptr);
  EXPECT_EQ(sampler.AddUsedUp(count + 1, &slots), count);
  EXPECT_EQ(static_cast<int64_t>(slots.size()), count);
  return slots;
}

// A queue whose rows go once, and a part that takes each of them twice.
std::unique_ptr<Sampler> OnceAndTwice() {
  return Mix({1, 1}, *MakeConsumingSelector({.inner = MakeFifoSelector()}),
             *MakeConsumingSelector({.max_times_sampled = 2}));
}

TEST(MixtureSelectorTest, RowsAreUsedUpOnceAllPartsHaveUsedThemUp) {
  const Rng rng(/*seed=*/31);
  for (uint64_t history = 0; history < 20; ++history) {
    StorageSimulator storage({.count = 2, .capacity = 8});
    auto sampler = storage.Attach(OnceAndTwice());
    storage.Append(8);
    // Draws of the row that is there, for each part, by slot and generation.
    std::map<std::pair<Slot, int64_t>, int64_t> drawn[2];
    bool had_some = false;
    for (uint32_t operation = 0; operation < 60; ++operation) {
      if (operation % 4 == 3) {
        ApplyRandomWrite(rng, history, operation, &storage);
      } else {
        SamplePlan plan;
        // One draw a part, or none.
        if (sampler
                ->Plan(
                    {.batch_size = 2, .seed = kSeed, .batch_number = operation},
                    &plan)
                .ok()) {
          ASSERT_EQ(plan.draws.size(), 2u);
          for (int part : {0, 1}) {
            ++drawn[part][{plan.draws[part].slot, plan.draws[part].generation}];
          }
        }
      }
      std::vector<Slot> want;
      for (const Slot slot : storage.Live()) {
        const std::pair row(slot, storage.Generation(slot));
        if (drawn[0][row] == 1 && drawn[1][row] == 2) want.push_back(slot);
      }
      ASSERT_THAT(UsedUp(*sampler), ::testing::UnorderedElementsAreArray(want))
          << "history " << history << ", operation " << operation;
      had_some |= !want.empty();
    }
    EXPECT_TRUE(had_some);
    // The order too is saved state.
    auto loaded = storage.Attach(OnceAndTwice());
    RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
    RILL_ASSERT_OK(loaded->LoadState(state));
    EXPECT_EQ(UsedUp(*loaded), UsedUp(*sampler));
    storage.Clear();
    EXPECT_THAT(UsedUp(*sampler), IsEmpty());
  }
}

TEST(MixtureSelectorTest, RowsThatAnAppendIsOverwritingAreNotUsedUp) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = storage.Attach(
      Mix({1, 1}, *MakeConsumingSelector(), *MakeConsumingSelector()));
  storage.Append(4);
  Take(*sampler, 8);
  EXPECT_THAT(UsedUp(*sampler), ::testing::UnorderedElementsAre(0, 1, 2, 3));
  storage.BeginAppend(0, 1, 2);
  EXPECT_THAT(UsedUp(*sampler), ::testing::UnorderedElementsAre(2, 3));
  storage.Finish();
  EXPECT_THAT(UsedUp(*sampler), ::testing::UnorderedElementsAre(2, 3));
}

TEST(MixtureSelectorTest, NoRowIsUsedUpWhereOnePartGoesOnDrawingIt) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  std::vector<MixturePart> inner;
  for (int i = 0; i < 2; ++i) {
    inner.push_back({.selector = *MakeConsumingSelector(), .share = 1});
  }
  auto nested = storage.Attach(
      Mix({2, 1}, *MakeMixtureSelector(std::move(inner)),
          *MakeConsumingSelector({.inner = MakeFifoSelector()})));
  auto other = storage.Attach(
      Mix({1, 1}, *MakeConsumingSelector(), MakeUniformSelector()));
  storage.Append(4);
  Take(*nested, 12);
  EXPECT_THAT(UsedUp(*nested), ::testing::UnorderedElementsAre(0, 1, 2, 3));
  Take(*other, 8);
  EXPECT_THAT(UsedUp(*other), IsEmpty());
}

TEST(MixtureSelectorTest, StateOfAnotherMixtureIsRefused) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto two =
      storage.Attach(Mix({1, 1}, MakeFifoSelector(), MakeLifoSelector()));
  auto one = storage.Attach(Mix({1}, MakeFifoSelector()));
  auto turned =
      storage.Attach(Mix({1, 1}, MakeLifoSelector(), MakeFifoSelector()));
  storage.Append(4);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, two->SaveState());
  EXPECT_THAT(one->LoadState(state),
              IsFailedPrecondition("parts of the mixture: got 2, want 1"));
  EXPECT_THAT(turned->LoadState(state), IsFailedPrecondition());
}

TEST(MixtureSelectorTest, PartsAreChecked) {
  const auto make = [](std::unique_ptr<Selector> selector, double share) {
    std::vector<MixturePart> parts;
    parts.push_back({.selector = MakeFifoSelector(), .share = 1});
    parts.push_back({.selector = std::move(selector), .share = share});
    return MakeMixtureSelector(std::move(parts)).status();
  };
  // More parts would share random numbers with parts of parts.
  const auto make_many = [](int64_t count) {
    std::vector<MixturePart> parts(count);
    for (MixturePart& part : parts) {
      part = {.selector = MakeUniformSelector(), .share = 1};
    }
    return MakeMixtureSelector(std::move(parts)).status();
  };
  for (const int64_t count : {0, 256}) {
    EXPECT_THAT(make_many(count), IsInvalidArgument("want [1, 255]"));
  }
  RILL_EXPECT_OK(make_many(255));
  EXPECT_THAT(make(nullptr, 1), IsInvalidArgument("parts[1].selector"));
  for (double share : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(make(MakeLifoSelector(), share),
                IsInvalidArgument("parts[1].share: got "));
  }
}

}  // namespace
}  // namespace rill
