// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_CLASSIC_ENV_H_
#define RILL_ENVS_CLASSIC_CONTROL_CLASSIC_ENV_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/envs/env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {

// The rows that one step of all lanes reads and writes, one after the other.
struct ClassicLanes {
  int64_t lanes;
  const int64_t* choice;  // Null unless the action is Categorical.
  const float* force;     // Null unless it is Bounded.
  const int64_t* steps;   // Of the episode, before this one.
  double* state;
  float* observation;
  float* reward;
  bool* terminated;
};

// A task of classic control: its specs, and its arithmetic for all lanes.
//
// Gymnasium's bits. A file with a task stands in a library with
// -ffp-contract=off, keeps the order of Gymnasium's operations, and calls
// libm's sine: another rounding grows to another ending within an episode.
struct ClassicTask {
  absl::string_view id;    // "CartPole-v1"
  absl::string_view name;  // "CartPole": how errors begin.
  LeafSpec observation;
  LeafSpec action;               // Categorical int64 or Bounded float32 [1].
  absl::string_view wanted;      // Of an action, in errors: "0 or 1".
  absl::Span<const double> low;  // Of each element of a state.
  absl::Span<const double> high;
  // A state is rounded to float32 by the first step.
  bool has_float_states = false;

  // The first state of an episode, a function of (rng, episode, lane); draws
  // are numbered lane * (elements of a state) + i.
  void (*init)(const Rng& rng, uint64_t episode, int64_t lane, double* state);
  void (*observe)(const double* state, float* observation);
  // Actions are inside the spec. Writes observation, reward and terminated.
  void (*step)(const ClassicLanes& lanes);
};

// Lanes of a task: their episodes, seeds and checks.
// State (SaveState): `state` float64 [lanes, n], and the leaves of
//   EpisodeCounters; `episode` counts resets since Seed.
// INVALID_ARGUMENT, starting with Make and the task's name, names the option.
struct ClassicOptions {
  int64_t lanes = 1;              // In [1, 2^30].
  int64_t max_episode_steps = 1;  // > 0.
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Env>> MakeClassicEnv(
    const ClassicTask& task, const ClassicOptions& options);
// The same with what the options of all tasks have.
template <typename Options>
absl::StatusOr<std::unique_ptr<Env>> MakeClassicEnv(const ClassicTask& task,
                                                    const Options& options) {
  return MakeClassicEnv(
      task, ClassicOptions{.lanes = options.lanes,
                           .max_episode_steps = options.max_episode_steps,
                           .seed = options.seed});
}

// The spec of an observation by the bounds of its elements, as many in both.
inline LeafSpec ObservationIn(absl::Span<const float> low,
                              absl::Span<const float> high) {
  const Shape shape = {static_cast<int64_t>(low.size())};
  return *LeafSpec::Bounded(*Tensor::From(low, shape),
                            *Tensor::From(high, shape));
}

// Uniform in [low, high): number `draw` of an episode.
inline double UniformIn(double low, double high, const Rng& rng,
                        uint64_t episode, int64_t draw) {
  return low +
         (high - low) * rng.UniformDouble(episode, static_cast<uint32_t>(draw));
}

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CLASSIC_CONTROL_CLASSIC_ENV_H_
