// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_EPISODE_TRACKERS_H_
#define RILL_TRANSFORMS_EPISODES_EPISODE_TRACKERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Marks where episodes start, beside an environment: true after a reset, false
// after a step. TorchRL's InitTracker.
//
// Shapes: `init_key` bool [lanes, 1] at the root and below next.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable, without a state.
//
// Example (EpisodeTrackersTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto tracker, InitTracker::Create({}));
struct InitTracker {
  struct Options {
    std::string init_key = "is_init";
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

// Numbers trajectories beside an environment, from 0 on. Each reset of a lane
// takes the next number, lanes of one reset in order: no two trajectories of an
// environment have the same. TorchRL's TrajCounter.
//
// Shapes: `out_key` int64 [lanes, 1] at the root and below next.
// State: "traj_count" int64 [], the number of trajectories so far. A load goes
//   on with it.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable.
// Cost: a step copies the numbers; no allocation once states come and go.
//
// Example (EpisodeTrackersTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto counter, TrajCounter::Create({}));
struct TrajCounter {
  struct Options {
    std::string out_key = "traj_count";
  };

  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_EPISODE_TRACKERS_H_
