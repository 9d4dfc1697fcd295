// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANE_ENV_H_
#define RILL_ENVS_LANE_ENV_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/rng.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The result of one lane's step, beside its observation.
struct LaneStep {
  float reward = 0;
  bool terminated = false;
  bool truncated = false;
};

// A simulator of one lane. It binds to the leaves of its lane once, when it is
// made, and reads and fills them in place.
// Thread-safety: thread-compatible; other lanes may run in other threads.
class Lane {
 public:
  virtual ~Lane() = default;

  // Begins an episode that is a function of (rng, episode) alone: draws are
  // rng.UniformDouble(episode, i). Writes the observation at the root. Where
  // steps draw too, keep one of these draws, rng.Bits64(episode, i), as a seed:
  // step t draws Rng(seed).UniformDouble(t, j). Seed and t belong to the state.
  virtual absl::Status Reset(const Rng& rng, uint64_t episode) = 0;
  // Reads the action, which is inside its spec; writes the observation below
  // next. After an error the lane is reset before it steps again.
  virtual absl::StatusOr<LaneStep> Step() = 0;

  // As Env::SaveState, for a dictionary of any batch shape.
  virtual absl::StatusOr<TensorDict> SaveState() const {
    return absl::UnimplementedError("this simulator cannot save its state");
  }
  virtual absl::Status LoadState(const TensorDict& /*state*/) {
    return absl::UnimplementedError("this simulator cannot load a state");
  }
};

// Makes lane `lane`. `row` holds the lane's leaves of a step, of batch shape
// []: views, which stay the same tensors.
using LaneFactory = std::function<absl::StatusOr<std::unique_ptr<Lane>>(
    int64_t lane, const TensorDict& row)>;

// An environment of simulators of one lane each, which a pool of threads steps.
// TorchRL's SerialEnv (threads = 1) and ParallelEnv.
//
// It checks actions and finished lanes, writes flags and rewards, and counts
// episodes; a lane does nothing but simulate. Data do not depend on the
// number of threads.
//
// Specs: one reward [1], flags of lanes alone (multi-agent simulators derive
//   from Env).
// Errors: those of lanes come back with the lane's number; that lane is done
//   and truncated then, and the others have stepped (Env::BeginStep).
// Thread-safety: thread-compatible. BeginStep starts the pool's threads on the
//   lanes, EndStep takes lanes too and waits.
// Cost: a virtual call and a pass over the flags a lane-step; with threads > 1
//   the wake-up of the pool and of the caller a step.
//
// Example (LaneEnvTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto env, MakeLaneEnv(spec, [](int64_t, const TensorDict& row) {
//         return MakeWalker(row);  // StatusOr<std::unique_ptr<Lane>>
//       }, {.threads = 2}));
struct LaneEnvOptions {
  int threads = 1;  // >= 1, the caller's among them.
  // > 0: the step that reaches it is truncated, as by Gymnasium's TimeLimit.
  int64_t max_episode_steps = 0;
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Env>> MakeLaneEnv(
    EnvSpec spec, const LaneFactory& make_lane,
    const LaneEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_LANE_ENV_H_
