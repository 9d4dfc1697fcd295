// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/plans_over_histories.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/chi_square.h"

namespace rill {

RowsOfTrajectories::RowsOfTrajectories(const StorageModel& model)
    : all_(model.Live()), trajectories_(model.Trajectories()) {
  for (size_t t = 0; t < trajectories_.size(); ++t) {
    const std::vector<Slot>& slots = trajectories_[t].slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      places_[slots[i]] = {t, static_cast<int64_t>(i)};
    }
  }
}

void ForPlansOverHistories(
    uint64_t histories, int64_t batch_size,
    const std::function<std::unique_ptr<Sampler>()>& make,
    const std::function<void(const SamplePlan*, const RowsOfTrajectories&)>&
        check) {
  for (uint64_t number = 0; number < histories; ++number) {
    const std::unique_ptr<Sampler> sampler = make();
    TrajectoryHistory history(number, /*max_capacity=*/20);
    history.model().AddObserver(sampler->observer());
    SamplePlan plan;
    for (uint64_t step = 0; step < 60; ++step) {
      history.Step();
      const absl::Status status = sampler->Plan(
          {.batch_size = batch_size, .seed = number, .batch_number = step},
          &plan);
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      check(status.ok() ? &plan : nullptr, RowsOfTrajectories(history.model()));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

void ExpectDrawsOfAUniformSampler(Sampler* sampler) {
  constexpr double kFalseAlarms = 1e-9;
  StorageModel storage({.count = 2, .capacity = 8}, {.ids = false});
  const auto uniform = MakeUniformSampler();
  storage.AddObserver(sampler->observer());
  storage.AddObserver(uniform->observer());
  storage.Append(0, std::vector<StorageModel::Value>(5));
  storage.Append(1, std::vector<StorageModel::Value>(11));
  std::vector<int64_t> counts(16, 0);
  for (uint64_t batch = 0; batch < 50; ++batch) {
    const SamplePlan plan = PlanOf(*sampler, 100, 1, batch);
    EXPECT_EQ(plan.draws, PlanOf(*uniform, 100, 1, batch).draws);
    for (const Draw& draw : plan.draws) ++counts[draw.slot];
  }
  std::vector<double> wanted(16, 1.0 / 13);
  std::fill(wanted.begin() + 5, wanted.begin() + 8, 0.0);
  EXPECT_THAT(counts, DistributedAs(wanted, kFalseAlarms));
}

}  // namespace rill
