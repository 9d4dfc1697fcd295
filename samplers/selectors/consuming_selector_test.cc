// SPDX-License-Identifier: Apache-2.0
// A name like U3 is the number of the TorchRL behaviour that a test repeats.
#include "rill/samplers/selectors/consuming_selector.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/slot.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> Make(int64_t times,
                              std::unique_ptr<Selector> inner = nullptr) {
  return *MakeConsumingSampler(
      {.max_times_sampled = times, .inner = std::move(inner)});
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Consuming, {.make = [] { return Make(1000); },
                                            .is_stateful = true});
// Consumed rows that come back, over a selector that keeps books of its own.
INSTANTIATE_SAMPLER_CONFORMANCE(
    ConsumingByPriority,
    {.make = [] { return Make(100, *MakeMaxHeapSelector()); },
     .is_random = false,
     .is_stateful = true});

namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kSeed = 47;

std::vector<Slot> Take(Sampler& sampler, int64_t batch_size,
                       uint64_t batch_number = 0) {
  return DrawnSlots(sampler, batch_size, kSeed, batch_number);
}

TEST(ConsumingSelectorTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sampler> sampler,
                            MakeConsumingSampler({.max_times_sampled = 2}));
  EXPECT_EQ(sampler->name(), "ConsumingSampler");
}

// Checksums that fit around counts that no selector has.
TEST(ConsumingSelectorTest, CountsThatMakeNoSenseAreDamage) {
  constexpr int64_t kMost = 3;
  const auto load = [&](int64_t count, int64_t group) {
    auto selector = MakeConsumingSelector({.max_times_sampled = kMost});
    const SlotRange slot = {.first = 0, .count = 1};
    const Cursor cursor = {.written = 1};
    (*selector)->OnAttach({.count = 1, .capacity = 4}, {&cursor, 1});
    (*selector)->OnAnchorsAdded({&slot, 1});
    SavedState counts("SlotArray", 1);
    counts.Set("runs", std::vector<int64_t>{0, 1, 0});
    counts.Set("values", std::vector<int64_t>{count});
    SavedState anchors("SlotGroups", 1);
    anchors.Set("groups", std::vector<int64_t>{group, 1});
    anchors.Set("runs", std::vector<int64_t>{0, 1});
    SavedState state("Consuming", 1);
    state.Set("most", kMost);
    state.SetPart("counts", counts);
    state.SetPart("anchors", anchors);
    state.SetPart("inner", SavedState("Uniform", 1));
    return (*selector)->LoadState(state, {});
  };
  RILL_EXPECT_OK(load(1, 0));
  RILL_EXPECT_OK(load(kMost, 1));
  for (const auto& [count, group] : {std::pair<int64_t, int64_t>{INT64_MAX, 0},
                                     {-1000, 0},
                                     {1, 1},
                                     {1, 7}}) {
    EXPECT_THAT(load(count, group), IsDataLoss()) << count << " " << group;
  }
}

TEST(ConsumingSelectorTest, CountsOfRowsThatAreNoAnchorsAreCheckedToo) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto selector, MakeConsumingSelector());
  const Cursor cursor = {.written = 2};
  selector->OnAttach({.count = 1, .capacity = 4}, {&cursor, 1});
  const auto saved = [&selector] {
    return samplers_internal::StateOf(*selector)->Encode();
  };
  const std::string before = saved();
  SavedState counts("SlotArray", 1);
  counts.Set("runs", std::vector<int64_t>{1, 1, 0});
  counts.Set("values", std::vector<int64_t>{-5});
  SavedState state = *samplers_internal::StateOf(*selector);
  state.SetPart("counts", counts);
  EXPECT_THAT(selector->LoadState(state, {}),
              IsDataLoss("draws of slot 1: got -5, want >= 0"));
  EXPECT_EQ(saved(), before);
}

TEST(ConsumingSelectorTest, LargeBatchTakesMemoryForWhatIsLeft) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler = storage.Attach(Make(2));
  storage.Append(6);
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan({.batch_size = Sampler::kMaxBatchSize}, &plan));
  EXPECT_EQ(plan.draws.size(), 12u);
  EXPECT_LE(plan.draws.capacity(), 24u);
}

TEST(ConsumingSelectorTest, U8_RowsVanishAfterTheirLastDraw) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = storage.Attach(Make(1));
  storage.Append(6);
  std::vector<Slot> all = Take(*sampler, 4);
  EXPECT_EQ(all.size(), 4u);
  for (const Slot slot : Take(*sampler, 4, 1)) all.push_back(slot);
  EXPECT_THAT(all, UnorderedElementsAre(0, 1, 2, 3, 4, 5));
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(sampler->Plan({.batch_size = 4}, &plan),
              IsFailedPrecondition("fewer than 1 times: got 0 of "
                                   "6, want >= 1"));
  ExpectEqualPlans(plan, SentinelPlan());
  storage.Append(2);
  EXPECT_THAT(Take(*sampler, 4), UnorderedElementsAre(6, 7));
}

TEST(ConsumingSelectorTest, EveryRowIsDrawnSoManyTimes) {
  StorageSimulator storage({.count = 2, .capacity = 10});
  auto sampler = storage.Attach(Make(3));
  storage.Append(4);
  std::vector<int64_t> counts(20, 0);
  for (uint64_t batch = 0; batch < 5; ++batch) {
    for (const Slot slot : Take(*sampler, 5, batch)) ++counts[slot];
  }
  EXPECT_THAT(counts, ElementsAre(3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 0,
                                  0, 0, 0, 0, 0));
}

TEST(ConsumingSelectorTest, OverFifoItIsAQueue) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = storage.Attach(Make(1, MakeFifoSelector()));
  storage.Append(3);
  EXPECT_THAT(Take(*sampler, 2), ElementsAre(0, 1));
  storage.Append(2);
  EXPECT_THAT(Take(*sampler, 3), ElementsAre(2, 3, 0));
}

TEST(ConsumingSelectorTest, RowThatIsWrittenAnewIsANewOne) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = storage.Attach(Make(1, MakeFifoSelector()));
  storage.Append(4);
  Take(*sampler, 4);
  storage.Overwrite({2});
  EXPECT_THAT(Take(*sampler, 4), ElementsAre(2));
  storage.Append(1);
  EXPECT_THAT(Take(*sampler, 4), ElementsAre(0));
}

TEST(ConsumingSelectorTest, EveryOrderIsEquallyLikely) {
  std::vector<int64_t> counts(24, 0);
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto sampler = storage.Attach(Make(1));
  for (uint64_t batch = 0; batch < 10'000; ++batch) {
    storage.Append(4);
    ++counts.at(RankOf(Take(*sampler, 4, batch)));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(24), 1e-9));
}

TEST(ConsumingSelectorTest, CountsAreSavedState) {
  // Draws before the load, fewer or more, do not matter.
  for (const auto& [is_queue, before] :
       {std::pair(false, 7), std::pair(true, 7), std::pair(true, 17)}) {
    StorageSimulator storage({.count = 2, .capacity = 6});
    const auto make = [is_queue = is_queue] {
      return Make(2, is_queue ? MakeFifoSelector() : nullptr);
    };
    auto sampler = storage.Attach(make());
    storage.Append(5);
    Take(*sampler, 13);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
    auto loaded = storage.Attach(make());
    Take(*loaded, before);
    RILL_ASSERT_OK(loaded->LoadState(state));
    EXPECT_THAT(loaded->SaveState(), IsOkAndHolds(state));
    // Either is used up after the same rows.
    for (int batch = 0; batch < 3; ++batch) {
      ExpectEqualPlans(PlanOf(*loaded, 3, kSeed, batch),
                       PlanOf(*sampler, 3, kSeed, batch));
    }
  }
}

TEST(ConsumingSelectorTest, StateOfAnotherLimitIsRefused) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto twice = storage.Attach(Make(2));
  auto thrice = storage.Attach(Make(3));
  storage.Append(4);
  Take(*thrice, 3);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before, thrice->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, twice->SaveState());
  EXPECT_THAT(thrice->LoadState(state),
              IsFailedPrecondition("max_times_sampled: got 2, want 3"));
  EXPECT_THAT(thrice->SaveState(), IsOkAndHolds(before));
}

TEST(ConsumingSelectorTest, InnerSelectorThatFindsNoMoreEndsTheBatch) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  // Rows without a version have version 0; all are fresh, then none is.
  int64_t current = 0;
  auto sampler = Make(1, MakeStalenessSelector({.max_staleness = 0,
                                                .current_version = [&current] {
                                                  return current;
                                                }}));
  storage.AddObserver(sampler->observer());
  storage.Append(4);
  EXPECT_EQ(Take(*sampler, 3).size(), 3u);
  current = 1;
  SamplePlan plan;
  EXPECT_THAT(sampler->Plan({.batch_size = 3}, &plan),
              IsFailedPrecondition("1 items of 1 policy"));
  current = 0;
  EXPECT_EQ(Take(*sampler, 3).size(), 1u);
}

TEST(ConsumingSelectorTest, OptionsAreChecked) {
  EXPECT_THAT(MakeConsumingSelector({.max_times_sampled = 0}),
              IsInvalidArgument("max_times_sampled: got 0, want >= 1"));
  std::vector<MixturePart> parts;
  parts.push_back({.selector = MakeUniformSelector(), .share = 1});
  RILL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Selector> mixture,
                            MakeMixtureSelector(std::move(parts)));
  EXPECT_THAT(MakeConsumingSelector({.inner = std::move(mixture)}),
              IsInvalidArgument("got a mixture"));
}

}  // namespace
}  // namespace rill
