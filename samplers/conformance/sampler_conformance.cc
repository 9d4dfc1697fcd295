// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/conformance/sampler_conformance.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "rill/base/rng.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/slots/write_observer.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;

constexpr uint64_t kSeed = 20240722;

void ExpectDrawsLiveRows(const StorageModel& model, Sampler& sampler,
                         uint64_t batch_number, const PlanForm& form) {
  const std::vector<Slot> live = model.Live();
  SamplePlan plan;
  const absl::Status status = sampler.Plan({.batch_size = form.BatchSize(8),
                                            .seed = kSeed,
                                            .batch_number = batch_number},
                                           &plan);
  if (!status.ok() && (live.empty() || form.may_find_nothing)) {
    EXPECT_THAT(status, IsFailedPrecondition());
    return;
  }
  RILL_ASSERT_OK(status);
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    EXPECT_THAT(live, Contains(plan.rows[i]));
    EXPECT_EQ(plan.generations[i], model.writes(plan.rows[i]) - 1);
  }
  for (const SamplePlan::Context& list : plan.context) {
    for (const Slot slot : list.rows) EXPECT_THAT(live, Contains(slot));
  }
  for (const Draw& draw : plan.draws) {
    EXPECT_THAT(live, Contains(draw.slot));
    EXPECT_EQ(draw.generation, model.writes(draw.slot) - 1);
  }
}

// --- Which rows are drawn ----------------------------------------------------

TEST_P(SamplerConformanceTest, DrawsOnlyLiveRowsAtEveryCursorPosition) {
  for (int64_t capacity : {1, 2, 3, 7}) {
    StorageSimulator storage({.count = 2, .capacity = capacity});
    auto sampler = storage.Attach(MakeSampler());
    // Every position, with a wrap at every offset.
    for (int64_t steps = 1; steps <= capacity; ++steps) {
      for (int64_t i = 0; i < 2 * capacity; ++i) {
        storage.Append(steps);
        ExpectValid(storage, *sampler, /*batches=*/2, kSeed);
      }
    }
  }
}

TEST_P(SamplerConformanceTest, DrawsOnlyLiveRowsOfLanesOfUnequalLength) {
  StorageSimulator storage({.count = 3, .capacity = 5});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(/*first_lane=*/1, /*num_lanes=*/1, /*steps=*/2);
  ExpectValid(storage, *sampler, 4, kSeed);
  storage.Append(2, 1, 9);
  ExpectValid(storage, *sampler, 4, kSeed);
  storage.Append(0, 2, 4);
  ExpectValid(storage, *sampler, 4, kSeed);
}

TEST_P(SamplerConformanceTest, WriteLongerThanALaneLeavesItsLastRows) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto sampler = storage.Attach(MakeSampler());
  for (int64_t steps : {3, 11, 4, 6, 21}) {
    storage.Append(steps);
    ExpectValid(storage, *sampler, 4, kSeed);
  }
}

TEST_P(SamplerConformanceTest, DrawsNothingThatAWriteInFlightHasRetired) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(6);
  for (int64_t steps : {1, 3, 4, 9}) {
    storage.BeginAppend(/*first_lane=*/0, /*num_lanes=*/1, steps);
    ExpectValid(storage, *sampler, 4, kSeed);
    storage.Finish();
    ExpectValid(storage, *sampler, 4, kSeed);
  }
  storage.BeginAppend(0, 2, 4);
  SamplePlan plan;
  EXPECT_THAT(
      sampler->Plan({.batch_size = form().BatchSize(4), .seed = kSeed}, &plan),
      IsFailedPrecondition());
  storage.Finish();
  ExpectValid(storage, *sampler, 4, kSeed);
}

TEST_P(SamplerConformanceTest, WriteInPlaceGivesTheRowsANewGeneration) {
  StorageSimulator storage({.count = 1, .capacity = 6});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(8);
  storage.BeginOverwrite({1, 2, 5});
  ExpectValid(storage, *sampler, 4, kSeed);
  storage.Finish();
  ExpectValid(storage, *sampler, 4, kSeed);
  storage.Overwrite({5});
  ExpectValid(storage, *sampler, 4, kSeed);
}

TEST_P(SamplerConformanceTest, LeavesNoLiveRowOut) {
  if (!GetParam().is_random || !GetParam().draws_all) {
    GTEST_SKIP() << "draws some rows only";
  }
  StorageSimulator storage({.count = 2, .capacity = 14});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(17);
  std::set<Slot> seen;
  for (uint64_t batch = 0; batch < 64 && seen.size() < 28; ++batch) {
    const SamplePlan plan = PlanItems(*sampler, 16, kSeed, batch);
    for (const Draw& draw : plan.draws) seen.insert(draw.slot);
    seen.insert(plan.rows.begin(), plan.rows.end());
  }
  const std::vector<Slot> live = storage.Live();
  EXPECT_THAT(seen, ElementsAreArray(live)) << "the rows in 64 plans";
}

TEST_P(SamplerConformanceTest, RestOfEpochCountsThePlansUpToTheNext) {
  StorageSimulator storage({.count = 2, .capacity = 14});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(14);
  Sampler::Request request = {.batch_size = form().BatchSize(5), .seed = kSeed};
  if (!sampler->traits().has_epochs) {
    EXPECT_THAT(sampler->RestOfEpoch(request), IsFailedPrecondition());
    return;
  }
  for (int epochs = 0; epochs < 2; ++epochs) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto first, sampler->RestOfEpoch(request));
    EXPECT_GT(first.plans, 0);
    for (int64_t left = first.plans; left > 0; --left) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto rest, sampler->RestOfEpoch(request));
      EXPECT_EQ(rest.plans, left);
      EXPECT_EQ(rest.epoch, first.epoch);
      SamplePlan plan;
      RILL_ASSERT_OK(sampler->Plan(request, &plan));
      EXPECT_EQ(plan.epoch, first.epoch);
      ++request.batch_number;
    }
    RILL_ASSERT_OK_AND_ASSIGN(const auto next, sampler->RestOfEpoch(request));
    EXPECT_EQ(next.epoch, first.epoch + 1);
  }
}

TEST_P(SamplerConformanceTest, FindsWhichDrawsAreStillThere) {
  StorageSimulator storage({.count = 2, .capacity = 6});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(6);
  std::vector<Draw> draws = {{.slot = -1}, {.slot = 12}, {.slot = 0}};
  draws[2].generation = 5;
  for (Slot slot = 0; slot < 12; ++slot) draws.push_back({.slot = slot});
  std::vector<uint8_t> is_current(draws.size(), 2);
  // Slots in flight are being written, and hold no row.
  const auto expect_current = [&](std::vector<Slot> stale,
                                  std::vector<Slot> in_flight = {}) {
    sampler->FindCurrent(draws, absl::MakeSpan(is_current));
    for (size_t i = 0; i < draws.size(); ++i) {
      const bool is_stale =
          std::find(stale.begin(), stale.end(), draws[i].slot) != stale.end();
      EXPECT_EQ(is_current[i], i >= 3 && !is_stale ? 1 : 0) << i;
    }
    std::vector<Slot> slots(12);
    std::iota(slots.begin(), slots.end(), 0);
    std::vector<int64_t> generations(12, -7);
    sampler->GetGenerations(slots, absl::MakeSpan(generations));
    for (const Slot slot : slots) {
      const bool has_row =
          storage.IsLive(slot) &&
          std::count(in_flight.begin(), in_flight.end(), slot) == 0;
      EXPECT_EQ(std::max<int64_t>(generations[slot], -1),
                has_row ? storage.Generation(slot) : -1)
          << "generation of slot " << slot;
    }
  };
  expect_current({});
  storage.BeginOverwrite({1, 7});
  expect_current({1, 7}, {1, 7});
  storage.Finish();
  expect_current({1, 7});
  storage.BeginAppend(/*first_lane=*/0, /*num_lanes=*/1, /*steps=*/3);
  expect_current({0, 1, 2, 7});
  storage.Finish();
  expect_current({0, 1, 2, 7});
}

TEST_P(SamplerConformanceTest, SeesRowsThatWereThereBeforeIt) {
  StorageSimulator storage({.count = 2, .capacity = 5});
  storage.Append(0, 1, 7);
  storage.Append(1, 1, 3);
  auto sampler = storage.Attach(MakeSampler());
  SamplePlan plan;
  RILL_ASSERT_OK(sampler->Plan(
      {.batch_size = form().BatchSize(64), .seed = kSeed}, &plan));
  for (const Draw& draw : plan.draws) EXPECT_EQ(draw.generation, 0);
  ExpectValidPlan(storage, *sampler, plan, 64, form());
}

TEST_P(SamplerConformanceTest, AttachedAgainTakesAllRowsForNewOnes) {
  StorageSimulator storage({.count = 2, .capacity = 5});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(0, 1, 7);
  storage.Append(1, 1, 3);
  storage.AttachAgain();
  ExpectValid(storage, *sampler, 4, kSeed);
  storage.Append(4);
  ExpectValid(storage, *sampler, 4, kSeed);
}

TEST_P(SamplerConformanceTest, ClearForgetsRowsButNotGenerations) {
  StorageSimulator storage({.count = 2, .capacity = 3});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(4);
  storage.Clear();
  SamplePlan plan;
  EXPECT_THAT(
      sampler->Plan({.batch_size = form().BatchSize(4), .seed = kSeed}, &plan),
      IsFailedPrecondition());
  storage.Append(2);
  ExpectValid(storage, *sampler, 4, kSeed);
}

TEST_P(SamplerConformanceTest, DrawsOnlyLiveRowsOverRandomHistories) {
  const Rng rng(kSeed, RngStream::kUser);
  for (uint64_t history = 0; history < 20; ++history) {
    const Lanes lanes = {.count = rng.UniformInt(history, 0, 4) + 1,
                         .capacity = rng.UniformInt(history, 1, 9) + 1};
    StorageSimulator storage(lanes);
    auto sampler = storage.Attach(MakeSampler());
    for (uint32_t operation = 1; operation <= 60; ++operation) {
      ApplyRandomWrite(rng, history, operation, &storage);
      if (!storage.Live().empty()) {
        ExpectValid(storage, *sampler, 1, operation);
      }
      if (HasFailure()) return;
    }
  }
}

// Between the halves of an append there may be those of others, and writes in
// place that name a slot twice.
TEST_P(SamplerConformanceTest, DrawsOnlyLiveRowsBesideSeveralWriters) {
  const Rng rng(kSeed, RngStream::kUser);
  for (uint64_t history = 0; history < 20; ++history) {
    auto sampler = MakeSampler();
    StorageModel model({.count = rng.UniformInt(history, 0, 3) + 1,
                        .capacity = rng.UniformInt(history, 1, 9) + 1},
                       StorageModel::kNothing);
    model.AddObserver(sampler->observer());
    for (uint32_t operation = 1; operation <= 60; ++operation) {
      uint32_t draw = 16 * operation;
      const auto pick = [&](int64_t bound) {
        return rng.UniformInt(history, draw++, bound);
      };
      const std::vector<Slot> live = model.Live();
      const int64_t kind = pick(10);
      if (kind < 2 && !live.empty()) {
        const Slot slot = live[pick(static_cast<int64_t>(live.size()))];
        model.WriteInPlace({slot, live.front(), slot}, [] {});
      } else if (kind < 6 && model.appends_in_flight() > 0) {
        model.FinishAppend();
      } else {
        std::vector<int64_t> counts;
        for (int64_t lane = 0; lane < model.lanes().count; ++lane) {
          counts.push_back(pick(model.Room(lane) + 1));
        }
        model.BeginAppend(counts);
      }
      ExpectDrawsLiveRows(model, *sampler, operation, form());
      if (HasFailure()) return;
    }
  }
}

// --- Equal histories ---------------------------------------------------------

TEST_P(SamplerConformanceTest, EqualHistoriesGiveEqualPlans) {
  StorageSimulator storage({.count = 2, .capacity = 50});
  auto sampler = storage.Attach(MakeSampler());
  auto twin = storage.Attach(MakeSampler());
  for (uint64_t batch = 0; batch < 8; ++batch) {
    storage.Append(static_cast<int64_t>(17 + batch));
    const SamplePlan plan = PlanItems(*sampler, 32, kSeed, batch);
    if (!GetParam().is_stateful) {
      ExpectEqualPlans(plan, PlanItems(*sampler, 32, kSeed, batch));
    }
    ExpectEqualPlans(plan, PlanItems(*twin, 32, kSeed, batch));
    const std::vector<float> priorities = PrioritiesFor(plan, batch);
    RILL_EXPECT_OK(sampler->UpdatePriorities(plan.draws, priorities));
    RILL_EXPECT_OK(twin->UpdatePriorities(plan.draws, priorities));
  }
}

TEST_P(SamplerConformanceTest, OtherSeedOrBatchNumberGivesAnotherPlan) {
  if (!GetParam().is_random) GTEST_SKIP() << "the plans are not random";
  StorageSimulator storage({.count = 1, .capacity = 1000});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(1000);
  const SamplePlan plan = PlanItems(*sampler, 16, kSeed, 3);
  EXPECT_NE(plan.draws, PlanItems(*sampler, 16, kSeed, 4).draws);
  EXPECT_NE(plan.draws, PlanItems(*sampler, 16, kSeed + 1, 3).draws);
}

TEST_P(SamplerConformanceTest, PlanReplacesWhatThePlanHeld) {
  StorageSimulator storage({.count = 1, .capacity = 10});
  auto sampler = storage.Attach(MakeSampler());
  auto twin = storage.Attach(MakeSampler());
  storage.Append(10);
  SamplePlan plan = SentinelPlan();
  RILL_ASSERT_OK(
      sampler->Plan({.batch_size = form().BatchSize(2), .seed = kSeed}, &plan));
  ExpectEqualPlans(plan, PlanItems(*twin, 2, kSeed, 0));
}

// --- What is read of events --------------------------------------------------

// Passes events on, with policy versions, which the simulator does not know.
// With `only_named` there are no other values than those that the sampler
// names, as in a storage that nobody else observes.
class ValueTeller final : public WriteObserver {
 public:
  ValueTeller(WriteObserver* sampler, bool only_named)
      : sampler_(*sampler), only_named_(only_named) {}

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    sampler_.OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override {
    sampler_.OnRetire(Told(event));
  }
  void OnWrite(const WriteEvent& event) override {
    ++writes_;
    sampler_.OnWrite(Told(event));
  }
  void OnClear() override { sampler_.OnClear(); }

 private:
  WriteEvent Told(const WriteEvent& event) {
    int64_t rows = 0;
    for (const SlotRange& range : event.written) rows += range.count;
    versions_.clear();
    for (int64_t i = 0; i < rows; ++i) versions_.push_back(writes_ / 3 + i % 2);
    WriteEvent told = event;
    told.policy_versions = versions_;
    const ValuesRead read = only_named_ ? sampler_.values_read() : ValuesRead();
    if (!read.trajectories) {
      told.ends = told.begins_cut = {};
      told.trajectory_ids = {};
    }
    if (!read.priorities) told.priorities = {};
    if (!read.policy_versions) told.policy_versions = {};
    return told;
  }

  WriteObserver& sampler_;
  const bool only_named_;
  int64_t writes_ = 0;
  std::vector<int64_t> versions_;
};

TEST_P(SamplerConformanceTest, ReadsNoValueThatItDoesNotName) {
  const Rng rng(kSeed, RngStream::kUser);
  StorageSimulator storage({.count = 2, .capacity = 16});
  auto sampler = MakeSampler();
  auto twin = MakeSampler();
  ValueTeller all(sampler->observer(), /*only_named=*/false);
  ValueTeller named(twin->observer(), /*only_named=*/true);
  storage.AddObserver(&all);
  storage.AddObserver(&named);
  for (uint32_t batch = 0; batch < 24; ++batch) {
    if (batch % 4 == 3) {
      storage.Overwrite({storage.Live().front()}, /*replaces=*/batch % 8 == 3);
    } else {
      const int64_t steps = 1 + rng.UniformInt(batch, 0, 20);
      std::vector<double> priorities(2 * std::min<int64_t>(steps, 16));
      for (uint32_t i = 0; i < priorities.size(); ++i) {
        priorities[i] = 0.25 + rng.UniformFloat(batch, i + 1);
      }
      storage.Append(/*first_lane=*/0, /*num_lanes=*/2, steps, priorities);
    }
    const Sampler::Request request = {.batch_size = form().BatchSize(8),
                                      .seed = kSeed,
                                      .batch_number = batch};
    SamplePlan plan, of_twin;
    ASSERT_EQ(sampler->Plan(request, &plan).code(),
              twin->Plan(request, &of_twin).code())
        << "of a sampler without the values that it does not name";
    ExpectEqualPlans(plan, of_twin);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
    EXPECT_THAT(twin->SaveState(), IsOkAndHolds(state))
        << "of a sampler without the values that it does not name";
  }
}

// --- Errors ------------------------------------------------------------------

TEST_P(SamplerConformanceTest, PlanOverNoRowsFailsAndLeavesThePlan) {
  auto sampler = MakeSampler();
  SamplePlan plan = SentinelPlan();
  EXPECT_THAT(sampler->Plan({.batch_size = form().BatchSize(2)}, &plan),
              IsFailedPrecondition("::Plan: "))
      << "not attached";
  StorageSimulator storage({.count = 2, .capacity = 4});
  storage.AddObserver(sampler->observer());
  EXPECT_THAT(sampler->Plan({.batch_size = form().BatchSize(2)}, &plan),
              IsFailedPrecondition("got 0, want"));
  ExpectEqualPlans(plan, SentinelPlan());
}

TEST_P(SamplerConformanceTest, BadBatchSizeFailsAndLeavesThePlan) {
  StorageSimulator storage({.count = 2, .capacity = 4});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(3);
  for (int64_t batch_size :
       {int64_t{0}, int64_t{-1}, Sampler::kMaxBatchSize + 1,
        std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    SamplePlan plan = SentinelPlan();
    EXPECT_THAT(sampler->Plan({.batch_size = batch_size}, &plan),
                IsInvalidArgument("got " + std::to_string(batch_size)));
    ExpectEqualPlans(plan, SentinelPlan());
  }
}

TEST_P(SamplerConformanceTest, BadPrioritiesAreRefusedAndChangeNothing) {
  StorageSimulator storage({.count = 1, .capacity = 64});
  auto sampler = storage.Attach(MakeSampler());
  auto twin = storage.Attach(MakeSampler());
  storage.Append(64);
  const SamplePlan before = PlanItems(*sampler, 8, kSeed, 0);
  PlanItems(*twin, 8, kSeed, 0);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), -1.0f,
                    std::numeric_limits<float>::infinity()}) {
    std::vector<float> priorities(8, 100.0f);
    priorities.back() = bad;
    EXPECT_THAT(sampler->UpdatePriorities(before.draws, priorities),
                IsInvalidArgument());
  }
  EXPECT_THAT(
      sampler->UpdatePriorities(before.draws, std::vector<float>(7, 100.0f)),
      IsInvalidArgument());
  for (uint64_t batch = 0; batch < 4; ++batch) {
    ExpectEqualPlans(PlanItems(*sampler, 8, kSeed, batch),
                     PlanItems(*twin, 8, kSeed, batch));
  }
}

TEST_P(SamplerConformanceTest, StalePrioritiesAreIgnored) {
  StorageSimulator storage({.count = 2, .capacity = 8});
  auto sampler = storage.Attach(MakeSampler());
  auto twin = storage.Attach(MakeSampler());
  storage.Append(8);
  std::vector<Draw> stale = PlanItems(*sampler, 16, kSeed, 0).draws;
  PlanItems(*twin, 16, kSeed, 0);
  storage.Append(8);
  storage.Overwrite({0, 3});
  // Rows that never were, or are no more, and slots that do not exist.
  stale.push_back({.slot = -1});
  stale.push_back({.slot = storage.lanes().num_slots()});
  stale.push_back({.slot = 0, .generation = -1});
  stale.push_back({.slot = 0, .generation = 1});
  RILL_EXPECT_OK(sampler->UpdatePriorities(
      stale, std::vector<float>(stale.size(), 1000.0f)));
  for (uint64_t batch = 0; batch < 4; ++batch) {
    ExpectEqualPlans(PlanItems(*sampler, 16, kSeed, batch),
                     PlanItems(*twin, 16, kSeed, batch));
  }
}

}  // namespace
}  // namespace rill
