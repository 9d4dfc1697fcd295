// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_STORED_TRAJECTORY_H_
#define RILL_REPLAY_STORED_TRAJECTORY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The stored steps of one episode, as ends and ids tell them apart
// (EventKeys, storage/row_writer.h): those that a slice sampler cuts its slices
// from.
struct StoredTrajectory {
  int64_t lane = 0;
  std::optional<int64_t> id = std::nullopt;
  bool is_closed = false;  // Its last step ends it; else it may go on.
  // Its first steps are gone, or may be. Where trajectories take turns in a
  // lane that has lost rows, this is known of the oldest one alone.
  bool is_cut = false;
  std::vector<Slot> slots;  // Oldest step first.
  TensorDict rows;          // [slots.size()], as they are stored.
};

// Which trajectories one wants, and what of them.
struct TrajectoryFilter {
  // Leaves to read; none: all.
  std::vector<std::string> keys = {};
  int64_t min_rows = 1;
  int64_t max_rows = std::numeric_limits<int64_t>::max();
  bool only_whole = false;  // Closed and not cut.
};

}  // namespace rill

#endif  // RILL_REPLAY_STORED_TRAJECTORY_H_
