// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/plans_over_histories.h"

#include <cstddef>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/samplers/trajectories/trajectory_history.h"

namespace rill {

RowsOfTrajectories::RowsOfTrajectories(const TrajectoryModel& model)
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

}  // namespace rill
