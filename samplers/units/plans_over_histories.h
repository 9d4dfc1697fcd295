// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_PLANS_OVER_HISTORIES_H_
#define RILL_SAMPLERS_UNITS_PLANS_OVER_HISTORIES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"

namespace rill {

// The reference for tests of units: where each live row lies in its trajectory,
// by looking at all rows.
//
// Thread-safety: thread-compatible.
class RowsOfTrajectories {
 public:
  explicit RowsOfTrajectories(const StorageModel& model);

  // Live rows, lane after lane, oldest first.
  const std::vector<Slot>& all() const { return all_; }
  bool IsLive(Slot slot) const { return places_.count(slot) > 0; }
  // The trajectory of a live row, and where in it the row lies.
  const std::vector<Slot>& TrajectoryOf(Slot slot) const {
    return trajectories_[places_.at(slot).first].slots;
  }
  int64_t OffsetOf(Slot slot) const { return places_.at(slot).second; }

 private:
  std::vector<Slot> all_;
  std::vector<StorageModel::Trajectory> trajectories_;
  std::map<Slot, std::pair<size_t, int64_t>> places_;
};

// Looks at plans of `batch_size` after each step of `histories` random
// histories (trajectories/trajectory_history.h): several lanes, wraps,
// producers that take turns, writes in place and in flight, clears. Each
// history has a sampler of its own; one that fails says FAILED_PRECONDITION,
// and `check` is then called with null.
void ForPlansOverHistories(
    uint64_t histories, int64_t batch_size,
    const std::function<std::unique_ptr<Sampler>()>& make,
    const std::function<void(const SamplePlan*, const RowsOfTrajectories&)>&
        check);

// A new sampler over a unit whose anchors are single rows draws what a uniform
// sampler draws at the same seed: each live row with the same probability, by
// chi-square. A GoogleTest failure otherwise.
void ExpectDrawsOfAUniformSampler(Sampler* sampler);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_PLANS_OVER_HISTORIES_H_
