// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_HISTORY_H_
#define RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_HISTORY_H_

#include <cstdint>
#include <map>
#include <utility>

#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"

namespace rill {

// Random writes to a model, all functions of a number: how many lanes of which
// capacity, how long trajectories are, and what writes report (ends, ids or
// both). Also whether producers alternate in a lane, and what is in flight at
// the same time. There are batches longer than the ring, writes in place of
// other ends and ids, and clears.
//
// Thread-safety: thread-compatible.
class TrajectoryHistory {
 public:
  // Capacities in [1, max_capacity].
  TrajectoryHistory(uint64_t number, int64_t max_capacity);

  // The model, for observers and looks.
  StorageModel& model() { return model_; }
  void Step();

 private:
  int64_t Pick(int64_t bound) {
    return rng_.UniformInt(number_, draw_++, bound);
  }
  StorageModel::Value NextValue(int64_t lane);
  void BeginAppend();
  void BeginInPlace();

  const Rng rng_;
  const uint64_t number_;
  uint32_t draw_ = 0;
  const StorageModel::Told told_;
  const Lanes lanes_;
  const int64_t producers_;
  const int64_t rarity_;                                // Of ends.
  std::map<std::pair<int64_t, int64_t>, int64_t> ids_;  // By lane, producer.
  int64_t last_id_ = 0;
  StorageModel model_;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_TRAJECTORIES_TRAJECTORY_HISTORY_H_
