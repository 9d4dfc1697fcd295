// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/ordered_selector.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"
#include "rill/samplers/transition_unit.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> MakeFifo() {
  return *MakeSampler(MakeFifoSelector(), MakeTransitionUnit(), "Fifo");
}
std::unique_ptr<Sampler> MakeLifo() {
  return *MakeSampler(MakeLifoSelector(), MakeTransitionUnit(), "Lifo");
}
std::unique_ptr<Sampler> MakeMin() {
  return *MakeSampler(*MakeMinHeapSelector(), MakeTransitionUnit(), "Min");
}
std::unique_ptr<Sampler> MakeMax() {
  return *MakeSampler(*MakeMaxHeapSelector({.new_priority = 0.5}),
                      MakeTransitionUnit(), "Max");
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(Fifo, {.make = MakeFifo, .is_random = false});
INSTANTIATE_SAMPLER_CONFORMANCE(Lifo, {.make = MakeLifo, .is_random = false});
INSTANTIATE_SAMPLER_CONFORMANCE(Min, {.make = MakeMin, .is_random = false});
INSTANTIATE_SAMPLER_CONFORMANCE(Max, {.make = MakeMax, .is_random = false});

namespace {

using ::testing::ElementsAre;

std::vector<Slot> Take(Sampler& sampler, int64_t batch_size) {
  return DrawnSlots(sampler, batch_size, /*seed=*/1);
}

TEST(OrderedSelectorTest, FifoTakesTheOldestAndLifoTheNewest) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto fifo = storage.Attach(MakeFifo());
  auto lifo = storage.Attach(MakeLifo());
  storage.Append(6);
  EXPECT_THAT(Take(*fifo, 3), ElementsAre(2, 3, 0));
  EXPECT_THAT(Take(*lifo, 3), ElementsAre(1, 0, 3));
  storage.BeginAppend(0, 1, 1);
  EXPECT_THAT(Take(*fifo, 3), ElementsAre(3, 0, 1));
  storage.Finish();
  EXPECT_THAT(Take(*fifo, 4), ElementsAre(3, 0, 1, 2));
}

TEST(OrderedSelectorTest, PartOfARowInPlaceChangesNoAge) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto fifo = storage.Attach(MakeFifo());
  storage.Append(4);
  storage.Overwrite({0, 2});
  EXPECT_THAT(Take(*fifo, 4), ElementsAre(0, 1, 2, 3));
  // In the order of the call.
  storage.Overwrite({2, 0}, /*replaces=*/true);
  EXPECT_THAT(Take(*fifo, 4), ElementsAre(1, 3, 2, 0));
}

TEST(OrderedSelectorTest, LargerBatchBeginsAgain) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto fifo = storage.Attach(MakeFifo());
  storage.Append(3);
  EXPECT_THAT(Take(*fifo, 7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(OrderedSelectorTest, StepsOfLanesThatAreWrittenTogetherAreEquallyOld) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto fifo = storage.Attach(MakeFifo());
  storage.Append(2);
  storage.Append(/*first_lane=*/1, /*num_lanes=*/1, /*steps=*/1);
  storage.Append(0, 1, 1);
  EXPECT_THAT(Take(*fifo, 6), ElementsAre(0, 4, 1, 5, 6, 2));
}

// Which a storage does not tell when it attaches the sampler.
TEST(OrderedSelectorTest, AgesOfLanesAreSavedState) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto fifo = storage.Attach(MakeFifo());
  storage.Append(/*first_lane=*/1, /*num_lanes=*/1, /*steps=*/3);
  storage.Append(0, 1, 2);
  EXPECT_THAT(Take(*fifo, 5), ElementsAre(4, 5, 6, 0, 1));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, fifo->SaveState());
  auto loaded = storage.Attach(MakeFifo());
  EXPECT_THAT(Take(*loaded, 5), ElementsAre(0, 4, 1, 5, 6));
  RILL_ASSERT_OK(loaded->LoadState(state));
  EXPECT_THAT(Take(*loaded, 5), ElementsAre(4, 5, 6, 0, 1));
}

TEST(OrderedSelectorTest, StateOfAnotherOrderIsRefused) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  const auto make = [&storage](std::unique_ptr<Selector> selector) {
    auto sampler = storage.Attach(
        *MakeSampler(std::move(selector), MakeTransitionUnit(), "Same"));
    return sampler;
  };
  const auto fifo = make(MakeFifoSelector());
  const auto lifo = make(MakeLifoSelector());
  storage.Append(3);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, fifo->SaveState());
  EXPECT_THAT(lifo->LoadState(state),
              IsFailedPrecondition(
                  "got the state of Fifo version 1, want that of Lifo"));
}

// Keys for four steps that no age makes.
TEST(OrderedSelectorTest, AgesThatNoAppendMakesAreDamage) {
  for (const bool is_fifo : {true, false}) {
    const auto selector = is_fifo ? MakeFifoSelector() : MakeLifoSelector();
    const Cursor cursor = {.written = 4};
    selector->OnAttach({.count = 1, .capacity = 4}, {&cursor, 1});
    const auto saved = [&selector] {
      return samplers_internal::StateOf(*selector)->Encode();
    };
    const std::string before = saved();
    const auto load = [&](double step) {
      SavedState keys("SlotArray", 1);
      keys.Set("runs", std::vector<int64_t>{2, 1, 0});
      keys.Set("values", std::vector<double>{is_fifo ? step : -step});
      SavedState state("Fifo", 1);
      state.Set("steps", int64_t{4});
      state.SetPart("keys", keys);
      return selector->LoadState(state, {});
    };
    for (const double step : {5.0, -1.0, 0.5, 1e300}) {
      EXPECT_THAT(load(step), IsDataLoss("step of slot 2: got ")) << step;
      EXPECT_EQ(saved(), before);
    }
    RILL_EXPECT_OK(load(4));
  }
}

TEST(OrderedSelectorTest, HeapsGoByPriority) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto min = storage.Attach(MakeMin());
  auto max = storage.Attach(MakeMax());
  storage.Append(0, 1, 4, {3, 1, 2, 1});
  EXPECT_THAT(Take(*min, 4), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(Take(*max, 4), ElementsAre(0, 2, 1, 3));
  const std::vector<Draw> draws = {{.slot = 0}, {.slot = 1}, {.slot = 0}};
  RILL_ASSERT_OK(min->UpdatePriorities(draws, {0, 5, 0.5}));
  EXPECT_THAT(Take(*min, 4), ElementsAre(0, 3, 2, 1));
  // New rows have 1 and 0.5.
  RILL_ASSERT_OK(max->UpdatePriorities(draws, {0, 5, 0.25}));
  storage.Append(1);
  storage.Overwrite({2}, /*replaces=*/true);
  EXPECT_THAT(Take(*min, 4), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(Take(*max, 4), ElementsAre(1, 3, 0, 2));
}

TEST(OrderedSelectorTest, PartOfARowInPlaceLeavesItsPriority) {
  StorageSimulator storage({.count = 1, .capacity = 3});
  auto min = storage.Attach(MakeMin());
  storage.Append(0, 1, 3, {3, 4, 2});
  storage.Overwrite({0, 2});
  EXPECT_THAT(Take(*min, 3), ElementsAre(2, 0, 1));
  storage.Overwrite({1}, /*replaces=*/true);
  EXPECT_THAT(Take(*min, 3), ElementsAre(1, 2, 0));
}

TEST(OrderedSelectorTest, PriorityThatIsNoNumberCountsAsNone) {
  StorageSimulator storage({.count = 1, .capacity = 4});
  auto min = storage.Attach(MakeMin());
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  storage.Append(0, 1, 4, {2, nan, 0.5, inf});
  EXPECT_THAT(Take(*min, 4), ElementsAre(2, 1, 3, 0));
}

TEST(OrderedSelectorTest, NewPriorityMustBeFinite) {
  const HeapSelectorOptions options = {
      .new_priority = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THAT(MakeMinHeapSelector(options),
              IsInvalidArgument("MakeMinHeapSelector: new_priority: got "));
  EXPECT_THAT(MakeMaxHeapSelector(options), IsInvalidArgument());
}

// The key of each row, by plain bookkeeping of the events.
class Oracle final : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor>) override {
    lanes_ = lanes;
    age.resize(lanes.num_slots());
    priority.resize(lanes.num_slots());
  }
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    ++writes_;
    std::vector<int64_t> steps(lanes_.count, 0);
    size_t row = 0;
    for (const SlotRange& range : event.written) {
      for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
        if (event.is_append) {
          age[slot] = {writes_, steps[lanes_.LaneOf(slot)]++, slot};
        }
        if (!event.priorities.empty()) {
          priority[slot] = event.priorities[row++];
        } else if (event.is_append) {
          priority[slot] = 1.0;
        }
      }
    }
  }
  void OnClear() override {}

  // Write, step of that write, slot.
  std::vector<std::tuple<int64_t, int64_t, Slot>> age;
  std::vector<double> priority;

 private:
  Lanes lanes_;
  int64_t writes_ = 0;
};

TEST(OrderedSelectorTest, AgreesWithSortingAllRows) {
  const Rng rng(31);
  for (uint64_t history = 0; history < 30; ++history) {
    StorageSimulator storage({.count = rng.UniformInt(history, 0, 3) + 1,
                              .capacity = rng.UniformInt(history, 1, 9) + 1});
    Oracle oracle;
    auto fifo = MakeFifo();
    auto min = MakeMin();
    storage.AddObserver(&oracle);
    storage.AddObserver(fifo->observer());
    storage.AddObserver(min->observer());
    for (uint32_t operation = 1; operation < 60; ++operation) {
      if (operation % 4 == 0) {
        std::vector<double> priorities;
        for (uint32_t i = 0; i < 2; ++i) {
          priorities.push_back(rng.UniformDouble(history + 99, operation + i));
        }
        storage.Append(0, 1, std::min<int64_t>(2, storage.lanes().capacity),
                       priorities);
      } else {
        ApplyRandomWrite(rng, history, operation, &storage);
      }
      std::vector<Slot> live = storage.Live();
      if (live.empty()) continue;
      if (operation % 3 == 0) {
        const Slot slot = live[operation % live.size()];
        const float priority = rng.UniformFloat(history, 10'000 + operation);
        RILL_ASSERT_OK(min->UpdatePriorities(
            {{.slot = slot, .generation = storage.Generation(slot)}},
            {priority}));
        oracle.priority[slot] = priority;
      }
      const auto count = static_cast<int64_t>(live.size());
      std::sort(live.begin(), live.end(),
                [&](Slot a, Slot b) { return oracle.age[a] < oracle.age[b]; });
      ASSERT_EQ(Take(*fifo, count), live);
      std::sort(live.begin(), live.end(), [&](Slot a, Slot b) {
        return std::pair(oracle.priority[a], a) <
               std::pair(oracle.priority[b], b);
      });
      ASSERT_EQ(Take(*min, count), live);
    }
  }
}

}  // namespace
}  // namespace rill
