// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_TRAJECTORY_ID_H_
#define RILL_FLOW_TRAJECTORY_ID_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rill {

// The leaf of a batch that has the number of each step's trajectory, int64.
inline constexpr absl::string_view kTrajectoryKey = "collector/traj_ids";

// Numbers of trajectories that no two producers share.
//
// Layout of the int64: bits 0 to 39 number the trajectories of one producer,
// bits 40 to 62 are the producer, bit 63 is 0. The ids of producer 0 are thus
// 0, 1, 2, ...
inline constexpr int kTrajectoryNumberBits = 40;
inline constexpr int64_t kMaxTrajectoryNumber =
    (int64_t{1} << kTrajectoryNumberBits) - 1;
inline constexpr int64_t kMaxTrajectoryProducer = (int64_t{1} << 23) - 1;

// The caller checks that `producer` is in [0, kMaxTrajectoryProducer] and
// `number` in [0, kMaxTrajectoryNumber].
constexpr int64_t TrajectoryId(int64_t producer, int64_t number) {
  return producer << kTrajectoryNumberBits | number;
}
constexpr int64_t TrajectoryProducer(int64_t id) {
  return id >> kTrajectoryNumberBits;
}
constexpr int64_t TrajectoryNumber(int64_t id) {
  return id & kMaxTrajectoryNumber;
}

static_assert(TrajectoryId(kMaxTrajectoryProducer, kMaxTrajectoryNumber) ==
              INT64_MAX);

}  // namespace rill

#endif  // RILL_FLOW_TRAJECTORY_ID_H_
