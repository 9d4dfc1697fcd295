// SPDX-License-Identifier: Apache-2.0
// A name like U3 is the number of the TorchRL behaviour that a test repeats.
#include "rill/samplers/selectors/without_replacement.h"

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/samplers/anchors.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/slots/slot.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {

INSTANTIATE_SAMPLER_CONFORMANCE(
    WithoutReplacement, {.make = [] { return MakeSamplerWithoutReplacement(); },
                         .is_stateful = true});

INSTANTIATE_SAMPLER_CONFORMANCE(
    InOrder,
    {.make = [] { return MakeSamplerWithoutReplacement({.shuffle = false}); },
     .is_random = false,
     .is_stateful = true});

namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr uint64_t kSeed = 23;

std::vector<Slot> Take(Sampler& sampler, int64_t batch_size) {
  return DrawnSlots(sampler, batch_size, kSeed);
}

TEST(WithoutReplacementTest, Example) {
  std::unique_ptr<Sampler> sampler =
      MakeSamplerWithoutReplacement({.drop_last = true});
  StorageSimulator storage({.count = 1, .capacity = 10});
  storage.AddObserver(sampler->observer());
  storage.Append(10);
  EXPECT_EQ(Take(*sampler, 4).size(), 4u);
}

TEST(WithoutReplacementTest, U3_EveryRowOnceAnEpochWithWhatIsLeftLast) {
  StorageSimulator storage({.count = 1, .capacity = 20});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(10);
  std::vector<std::vector<Slot>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Slot> all;
    for (size_t size : {3, 3, 3, 1}) {
      const std::vector<Slot> batch = Take(*sampler, 3);
      EXPECT_EQ(batch.size(), size);
      all.insert(all.end(), batch.begin(), batch.end());
    }
    EXPECT_THAT(all, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    epochs.push_back(all);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(WithoutReplacementTest, PlansOfAnEpochHaveItsNumber) {
  StorageSimulator storage({.count = 1, .capacity = 5});
  auto sampler = MakeSamplerWithoutReplacement();
  EXPECT_TRUE(sampler->traits().has_epochs);
  storage.AddObserver(sampler->observer());
  storage.Append(5);
  std::vector<uint64_t> epochs;
  for (int plan = 0; plan < 6; ++plan) {
    epochs.push_back(PlanOf(*sampler, 2, kSeed, 0).epoch);
  }
  EXPECT_EQ(epochs[1], epochs[0]);
  EXPECT_EQ(epochs[2], epochs[0]);
  EXPECT_NE(epochs[3], epochs[0]);
  EXPECT_EQ(epochs[4], epochs[3]);
  EXPECT_EQ(epochs[5], epochs[3]);
}

TEST(WithoutReplacementTest, U3_DropLastPassesOverWhatIsLessThanABatch) {
  StorageSimulator storage({.count = 1, .capacity = 20});
  auto sampler =
      storage.Attach(MakeSamplerWithoutReplacement({.drop_last = true}));
  storage.Append(10);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<Slot> all;
    for (int batch = 0; batch < 3; ++batch) {
      const std::vector<Slot> slots = Take(*sampler, 3);
      EXPECT_EQ(slots.size(), 3u);
      all.insert(slots.begin(), slots.end());
    }
    EXPECT_EQ(all.size(), 9u);
  }
}

TEST(WithoutReplacementTest, U4_DropLastRefusesABatchOfMoreThanThereIs) {
  StorageSimulator storage({.count = 1, .capacity = 20});
  auto sampler =
      storage.Attach(MakeSamplerWithoutReplacement({.drop_last = true}));
  storage.Append(10);
  const std::vector<Slot> first = Take(*sampler, 6);
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(
      sampler->Plan({.batch_size = 11, .seed = kSeed}, &plan),
      IsFailedPrecondition("::Plan: items of an epoch: got 10, want >= 11"));
  ExpectEqualPlans(plan, SentinelPlan());
  // The epoch goes on where it was.
  std::vector<Slot> all = Take(*sampler, 4);
  all.insert(all.end(), first.begin(), first.end());
  EXPECT_THAT(all, UnorderedElementsAreArray(storage.Live()));
}

TEST(WithoutReplacementTest, U5_WithoutShuffleTheOrderIsThatOfTheSlots) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto sampler =
      storage.Attach(MakeSamplerWithoutReplacement({.shuffle = false}));
  storage.Append(0, 1, 3);
  storage.Append(1, 1, 2);
  EXPECT_THAT(Take(*sampler, 2), ElementsAre(0, 1));
  EXPECT_THAT(Take(*sampler, 2), ElementsAre(2, 4));
  EXPECT_THAT(Take(*sampler, 2), ElementsAre(5));
  EXPECT_THAT(Take(*sampler, 9), ElementsAre(0, 1, 2, 4, 5));
}

TEST(WithoutReplacementTest, FirstEpochMayBeTheRestOfAnother) {
  for (const bool shuffle : {true, false}) {
    StorageSimulator storage({.count = 1, .capacity = 20});
    const auto make = [&] {
      auto sampler = storage.Attach(MakeSamplerWithoutReplacement(
          {.shuffle = shuffle,
           // Three that are rows, and some that nobody has left over.
           .first_epoch = WithoutReplacementOptions::Rest{
               .num_slots = 10, .slots = {7, -1, 2, 10, 20, 2, 9, 7}}}));
      return sampler;
    };
    auto waiting = make();
    storage.Append(6);  // The epoch began when there were more.
    storage.Append(4);
    auto sampler = make();
    auto grown = make();
    auto loaded = make();
    EXPECT_THAT(Take(*sampler, 2), ElementsAre(7, 2));
    // Its order is saved state, at any place.
    for (Sampler* const each : {waiting.get(), sampler.get()}) {
      RILL_ASSERT_OK_AND_ASSIGN(const std::string state, each->SaveState());
      RILL_ASSERT_OK(loaded->LoadState(state));
      EXPECT_THAT(loaded->SaveState(), IsOkAndHolds(state));
      if (each == waiting.get()) {
        EXPECT_THAT(Take(*loaded, 2), ElementsAre(7, 2));
      }
      EXPECT_THAT(Take(*loaded, 2), ElementsAre(9));
    }
    EXPECT_THAT(Take(*sampler, 2), ElementsAre(9));
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_THAT(Take(*sampler, 20),
                  UnorderedElementsAreArray(storage.Live()));
    }
    storage.Append(1);
    EXPECT_THAT(Take(*grown, 20), UnorderedElementsAreArray(storage.Live()));
    auto cleared = make();
    storage.Clear();
    storage.Append(10);
    EXPECT_THAT(Take(*cleared, 20), UnorderedElementsAreArray(storage.Live()));
  }
}

TEST(WithoutReplacementTest, GrowthBeginsTheEpochAnew) {
  StorageSimulator storage({.count = 1, .capacity = 20});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(10);
  Take(*sampler, 6);
  storage.Append(1);
  EXPECT_THAT(Take(*sampler, 20), UnorderedElementsAreArray(storage.Live()));
}

TEST(WithoutReplacementTest, WritingOverRowsDoesNotBeginTheEpochAnew) {
  StorageSimulator storage({.count = 2, .capacity = 5});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(7);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Slot> all;
    for (int batch = 0; batch < 5; ++batch) {
      for (const Slot slot : Take(*sampler, 2)) all.push_back(slot);
      storage.Append(/*first_lane=*/batch % 2, /*num_lanes=*/1, /*steps=*/3);
      storage.Overwrite({1, 6});
    }
    EXPECT_THAT(all, UnorderedElementsAreArray(storage.Live()));
  }
}

TEST(WithoutReplacementTest, TurnOfARowInFlightPasses) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler =
      storage.Attach(MakeSamplerWithoutReplacement({.shuffle = false}));
  storage.Append(6);
  storage.BeginAppend(0, 1, 2);
  EXPECT_THAT(Take(*sampler, 2), ElementsAre(2, 3));
  storage.Finish();
  EXPECT_THAT(Take(*sampler, 4), ElementsAre(4, 5));
  EXPECT_THAT(Take(*sampler, 4), ElementsAre(0, 1, 2, 3));
}

TEST(WithoutReplacementTest, ClearedStorageBeginsAnew) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(6);
  Take(*sampler, 4);
  storage.Clear();
  storage.Append(3);
  EXPECT_THAT(Take(*sampler, 6), UnorderedElementsAre(0, 1, 2));
}

TEST(WithoutReplacementTest, OrdersOfAnEpochAreEquallyLikely) {
  StorageSimulator storage({.count = 2, .capacity = 8});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(2);
  std::vector<int64_t> counts(24, 0);
  for (int epoch = 0; epoch < 10'000; ++epoch) {
    ++counts.at(RankOf(Take(*sampler, 4)));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(24), 1e-9));
}

// Every 64th slot is an anchor.
class FewAnchors final : public Anchors {
 public:
  int64_t size() const override { return 1 << 14; }
  Slot At(int64_t n) const override {
    ++listed_;
    return 64 * n;
  }
  bool Contains(Slot slot) const override {
    ++looks_;
    return slot % 64 == 0;
  }
  Slot Pick(const Rng::Block& /*bits*/) const override { return 0; }

  int64_t looks() const { return looks_; }
  int64_t listed() const { return listed_; }

 private:
  mutable int64_t looks_ = 0;
  mutable int64_t listed_ = 0;
};

TEST(WithoutReplacementTest, FewAnchorsAmongManySlotsAreTakenWithoutALook) {
  const auto selector = MakeWithoutReplacementSelector();
  const Cursor cursor = {.written = 1 << 20};
  selector->OnAttach({.count = 1, .capacity = 1 << 20}, {&cursor, 1});
  FewAnchors anchors;
  std::set<Slot> seen;
  for (int batch = 0; batch < 64; ++batch) {
    std::vector<Draw> draws;
    RILL_ASSERT_OK(selector->Prepare({.count = 256, .seed = kSeed}, anchors));
    selector->Select({.count = 256, .seed = kSeed}, anchors, &draws);
    for (const Draw& draw : draws) seen.insert(draw.slot);
  }
  EXPECT_EQ(seen.size(), 1u << 14);
  EXPECT_EQ(anchors.looks(), 1 << 14);
}

TEST(WithoutReplacementTest, FewAnchorsAreListedOnceAnEpochWhateverIsWritten) {
  const auto selector = MakeWithoutReplacementSelector();
  Slot next = 1 << 20;
  const Cursor cursor = {.written = next};
  selector->OnAttach({.count = 1, .capacity = 1 << 21}, {&cursor, 1});
  FewAnchors anchors;
  std::set<Slot> seen;
  for (int batch = 0; batch < 64; ++batch) {
    std::vector<Draw> draws;
    selector->Select({.count = 256, .seed = kSeed}, anchors, &draws);
    for (const Draw& draw : draws) seen.insert(draw.slot);
    const SlotRange row = {.first = next++, .count = 1};
    WriteEvent event;
    event.written = {&row, 1};
    selector->OnWrite(event);
  }
  EXPECT_EQ(seen.size(), 1u << 14);
  EXPECT_EQ(anchors.listed(), 1 << 14);
}

// Over lanes that are not equally full, while rows are written over.
TEST(WithoutReplacementTest, LargeEpochsHoldEveryRowOnce) {
  StorageSimulator storage({.count = 3, .capacity = 3000});
  auto sampler = storage.Attach(MakeSamplerWithoutReplacement());
  storage.Append(0, 1, 3500);
  storage.Append(1, 2, 1000);
  std::vector<Slot> all;
  for (int batch = 0; batch < 50; ++batch) {
    for (const Slot slot : Take(*sampler, 100)) all.push_back(slot);
    storage.Append(/*first_lane=*/0, /*num_lanes=*/1, /*steps=*/70);
  }
  EXPECT_EQ(all.size(), 5000u);
  EXPECT_THAT(std::set<Slot>(all.begin(), all.end()),
              ::testing::ElementsAreArray(storage.Live()));
}

}  // namespace
}  // namespace rill
