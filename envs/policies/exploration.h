// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_EXPLORATION_H_
#define RILL_ENVS_POLICIES_EXPLORATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/spec.h"

namespace rill {

// Random actions, and policies that explore by changing the actions of another.
//
// Actions are one or many leaves, in host memory; `action` is EnvSpec::action.
// RandomPolicy and EGreedy take the whole spec of the environment, and keep to
// its legal actions. A policy that writes the log-probability of its action
// (IsLogProbKey) is not wrapped: that of another action is not known. The
// wrapped policy is not owned and must outlive the wrapper, so that an
// evaluation can call it directly; with ActContext::explore off a wrapper
// changes nothing. Outputs and versions are the wrapped policy's.
//
// Draws are functions of (ActContext::SeedOf(seed), ActContext::step, lane,
// element), from RngStream::kPolicy: a resumed run acts as an uninterrupted
// one, and each worker draws numbers of its own.
// Annealing is linear in ActContext::frames, the run's, from `_init` at frame 0
// to `_end` at frame annealing_num_steps, and stays there.
// Errors: INVALID_ARGUMENT names the option, or the leaf of the action that
//   does not fit; NOT_FOUND a leaf that the step lacks.
// Thread-safety: that of Policy.
// Cost: one to two counter-based draws an element.
//
// Example (ExplorationTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto explorer,
//                         MakeEGreedy(&policy, env->spec(),
//                                     {.annealing_num_steps = 10'000}));

// Uniform over the spec and the legal options; standard normal where a
// floating-point leaf is unbounded. TorchRL's RandomPolicy.
struct RandomPolicyOptions {
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Policy>> MakeRandomPolicy(
    EnvSpec env, const RandomPolicyOptions& options = {});

// With probability epsilon a lane's whole action is a random one. TorchRL's
// EGreedyModule.
struct EGreedyOptions {
  double eps_init = 1.0;  // Both in [0, 1].
  double eps_end = 0.1;
  int64_t annealing_num_steps = 1000;  // Frames, > 0.
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Policy>> MakeEGreedy(
    Policy* policy, EnvSpec env, const EGreedyOptions& options = {});

// Adds sigma * N(mean, std) to each element of float32 and float64 leaves, and
// clips to their bounds. TorchRL's AdditiveGaussianModule.
struct AdditiveGaussianOptions {
  double sigma_init = 1.0;  // Both finite and >= 0.
  double sigma_end = 0.1;
  int64_t annealing_num_steps = 1000;  // Frames, > 0.
  double mean = 0;
  double std = 1;  // >= 0.
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Policy>> MakeAdditiveGaussian(
    Policy* policy, TensorDictSpec action,
    const AdditiveGaussianOptions& options = {});

// Adds eps * x to each element of float32 and float64 leaves, and clips to the
// bounds. The noise moves with every step:
//   x' = x + theta (mu - x) dt + sigma sqrt(dt) N(0, 1).
// The noise of the action "k" is recurrent state, the leaf "k_noise". It is 0
// where an episode begins. TorchRL's OrnsteinUhlenbeckProcessModule (Uhlenbeck,
// Ornstein, 1930).
struct OrnsteinUhlenbeckOptions {
  double eps_init = 1.0;  // Both finite and >= 0.
  double eps_end = 0.1;
  int64_t annealing_num_steps = 1000;  // Frames, > 0.
  double theta = 0.15;
  double mu = 0;
  double sigma = 0.2;  // >= 0.
  double dt = 0.01;    // > 0.
  uint64_t seed = 0;
};
absl::StatusOr<std::unique_ptr<Policy>> MakeOrnsteinUhlenbeck(
    Policy* policy, TensorDictSpec action,
    const OrnsteinUhlenbeckOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_EXPLORATION_H_
