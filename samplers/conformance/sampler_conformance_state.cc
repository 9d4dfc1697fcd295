// SPDX-License-Identifier: Apache-2.0
// The part of the suite that is about saved state and about threads.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/rng.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;

constexpr uint64_t kSeed = 20240722;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

// Writes, plans and priorities, so that there is a state worth saving.
void Train(StorageSimulator& storage, Sampler& sampler, const PlanForm& form) {
  for (uint64_t batch = 0; batch < 6; ++batch) {
    storage.Append(5);
    const SamplePlan plan = PlanOf(sampler, form.BatchSize(16), kSeed, batch);
    RILL_EXPECT_OK(
        sampler.UpdatePriorities(plan.draws, PrioritiesFor(plan, batch)));
  }
  storage.Overwrite({2, 7});
}

TEST_P(SamplerConformanceTest, LoadedStateGoesOnAsTheSavedOne) {
  StorageSimulator storage({.count = 2, .capacity = 12});
  auto sampler = storage.Attach(MakeSampler());
  Train(storage, *sampler, form());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  EXPECT_THAT(sampler->SaveState(), IsOkAndHolds(state));

  auto loaded = storage.Attach(MakeSampler());
  RILL_ASSERT_OK(loaded->LoadState(state));
  EXPECT_THAT(loaded->SaveState(), IsOkAndHolds(state));
  for (uint64_t batch = 6; batch < 12; ++batch) {
    const SamplePlan plan = PlanItems(*sampler, 16, kSeed, batch);
    ExpectEqualPlans(plan, PlanItems(*loaded, 16, kSeed, batch));
    const std::vector<float> priorities = PrioritiesFor(plan, batch);
    RILL_EXPECT_OK(sampler->UpdatePriorities(plan.draws, priorities));
    RILL_EXPECT_OK(loaded->UpdatePriorities(plan.draws, priorities));
    storage.Append(/*first_lane=*/1, /*num_lanes=*/1, /*steps=*/3);
  }
}

TEST_P(SamplerConformanceTest, StateOfAnEmptyStorageIsAState) {
  StorageSimulator storage({.count = 2, .capacity = 12});
  auto sampler = storage.Attach(MakeSampler());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  auto loaded = storage.Attach(MakeSampler());
  RILL_ASSERT_OK(loaded->LoadState(state));
  storage.Append(3);
  ExpectValid(storage, *loaded, 2, kSeed);
}

TEST_P(SamplerConformanceTest, DamagedStateIsRefusedAndChangesNothing) {
  StorageSimulator storage({.count = 2, .capacity = 12});
  auto sampler = storage.Attach(MakeSampler());
  Train(storage, *sampler, form());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string good, sampler->SaveState());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x41);
    EXPECT_THAT(sampler->LoadState(flipped),
                StatusIs(AnyOf(kDataLoss, kFailedPrecondition)))
        << "byte " << i;
    EXPECT_THAT(sampler->LoadState(good.substr(0, i)),
                StatusIs(AnyOf(kDataLoss, kFailedPrecondition)))
        << "cut at " << i;
  }
  EXPECT_THAT(sampler->LoadState(good + "x"),
              StatusIs(AnyOf(kDataLoss, kFailedPrecondition)));
  EXPECT_THAT(sampler->SaveState(), IsOkAndHolds(good));
  auto twin = storage.Attach(MakeSampler());
  RILL_ASSERT_OK(twin->LoadState(good));
  ExpectEqualPlans(PlanItems(*sampler, 16, kSeed, 99),
                   PlanItems(*twin, 16, kSeed, 99));
}

TEST_P(SamplerConformanceTest, StateOfOtherRowsIsRefused) {
  StorageSimulator storage({.count = 2, .capacity = 12});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(7);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  for (const Lanes& lanes :
       {Lanes{.count = 2, .capacity = 11}, Lanes{.count = 1, .capacity = 24},
        Lanes{.count = 2, .capacity = 12}}) {
    StorageSimulator other(lanes);
    auto loaded = MakeSampler();
    other.AddObserver(loaded->observer());
    other.Append(6);
    EXPECT_THAT(loaded->LoadState(state), IsFailedPrecondition());
    ExpectValid(other, *loaded, 2, kSeed);
  }
}

TEST_P(SamplerConformanceTest, StateOfRowsThatMovedIsTaken) {
  const Lanes lanes = {.count = 2, .capacity = 12};
  StorageSimulator storage(lanes);
  auto sampler = storage.Attach(MakeSampler());
  Train(storage, *sampler, form());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string state, sampler->SaveState());
  for (const int64_t capacity : {9, 12, 13, 40}) {
    StorageSimulator other({.count = 2, .capacity = capacity});
    auto moved = MakeSampler();
    other.AddObserver(moved->observer());
    other.Append(12);
    const MovedRows rows = MovedRows::Of(
        lanes, other.lanes(), std::vector<Cursor>(2, {.written = 12}));
    const absl::Status status = moved->LoadState(state, {.moved = &rows});
    if (GetParam().refuses_moved_rows) {
      EXPECT_THAT(status, IsFailedPrecondition());
      ExpectValid(other, *moved, 2, kSeed);
      continue;
    }
    RILL_ASSERT_OK(status) << capacity;
    ExpectValid(other, *moved, 2, kSeed);
    other.Append(5);
    ExpectValid(other, *moved, 2, kSeed);
    // A loaded state is as good as any other.
    RILL_ASSERT_OK_AND_ASSIGN(const std::string again, moved->SaveState());
    auto twin = MakeSampler();
    other.AddObserver(twin->observer());
    RILL_ASSERT_OK(twin->LoadState(again));
    ExpectEqualPlans(PlanItems(*moved, 16, kSeed, 99),
                     PlanItems(*twin, 16, kSeed, 99));
  }
}

TEST_P(SamplerConformanceTest, DamagedStateOfRowsThatMovedChangesNothing) {
  const Lanes lanes = {.count = 2, .capacity = 12};
  StorageSimulator storage(lanes);
  auto sampler = storage.Attach(MakeSampler());
  Train(storage, *sampler, form());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string good, sampler->SaveState());
  StorageSimulator other({.count = 2, .capacity = 20});
  auto moved = MakeSampler();
  other.AddObserver(moved->observer());
  other.Append(12);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before, moved->SaveState());
  const std::vector<Cursor> cursors(2, {.written = 12});
  const MovedRows rows = MovedRows::Of(lanes, other.lanes(), cursors);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x41);
    for (const std::string& bad : {flipped, good.substr(0, i)}) {
      EXPECT_THAT(moved->LoadState(bad, {.moved = &rows}),
                  StatusIs(AnyOf(kDataLoss, kFailedPrecondition)))
          << "byte " << i;
    }
  }
  const MovedRows of_others =
      MovedRows::Of({.count = 2, .capacity = 10}, other.lanes(), cursors);
  EXPECT_THAT(moved->LoadState(good, {.moved = &of_others}),
              IsFailedPrecondition());
  EXPECT_THAT(moved->SaveState(), IsOkAndHolds(before));
}

TEST_P(SamplerConformanceTest, PlansWhileWritesGoOn) {
  StorageSimulator storage({.count = 2, .capacity = 16});
  auto sampler = storage.Attach(MakeSampler());
  storage.Append(4);
  std::atomic<bool> is_writing = true;
  std::atomic<int64_t> bad_draws = 0;
  auto plan_batches = [&](uint64_t seed) {
    SamplePlan plan;
    // At least a few plans, also where the writer is done at once.
    for (uint64_t batch = 0; batch < 50 || is_writing; ++batch) {
      const absl::Status status =
          sampler->Plan({.batch_size = form().BatchSize(8),
                         .seed = seed,
                         .batch_number = batch},
                        &plan);
      if (!status.ok() && !absl::IsFailedPrecondition(status)) ++bad_draws;
      if (!status.ok()) continue;
      for (const Draw& draw : plan.draws) {
        if (draw.slot < 0 || draw.slot >= 32 || draw.generation < 0) {
          ++bad_draws;
        }
      }
      if (!sampler->UpdatePriorities(plan.draws, PrioritiesFor(plan, batch))
               .ok()) {
        ++bad_draws;
      }
      if (!sampler->SaveState().ok()) ++bad_draws;
    }
    return absl::OkStatus();
  };
  // Outside a test's own thread an exception would end the program.
  const auto guarded = [&](uint64_t seed) {
    RILL_EXPECT_OK(
        CatchExceptions([&] { return plan_batches(seed); }, sampler->name()));
  };
  std::thread first(guarded, 1);
  std::thread second(guarded, 2);
  const Rng rng(kSeed, RngStream::kUser);
  RILL_EXPECT_OK(CatchExceptions(
      [&] {
        for (uint32_t operation = 0; operation < 500; ++operation) {
          ApplyRandomWrite(rng, /*history=*/0, operation, &storage);
        }
        return absl::OkStatus();
      },
      sampler->name()));
  is_writing = false;
  first.join();
  second.join();
  EXPECT_EQ(bad_draws, 0);
  storage.Append(1);
  ExpectValid(storage, *sampler, 4, kSeed);
}

}  // namespace
}  // namespace rill
