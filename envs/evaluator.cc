// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/evaluator.h"

#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

// One lane's place in its share of the episodes: lane, lane + lanes, ...
struct Lane {
  int64_t episode = 0;
  double episode_return = 0;
  int64_t length = 0;
};

absl::Status CheckOptions(const EvaluateOptions& options) {
  if (options.episodes < 1) {
    return InvalidArgument("EvaluatePolicy: episodes: got ", options.episodes,
                           ", want >= 1");
  }
  if (options.max_steps_per_episode < 1) {
    return InvalidArgument("EvaluatePolicy: max_steps_per_episode: got ",
                           options.max_steps_per_episode, ", want >= 1");
  }
  return absl::OkStatus();
}

// Adds the step that `driver` has made to every lane that still runs an
// episode of its share; returns how many episodes ended.
absl::StatusOr<int64_t> Account(const StepDriver& driver,
                                const EvaluateOptions& options,
                                std::vector<Lane>* lanes,
                                EvaluateResult* result) {
  int64_t ended = 0;
  for (size_t l = 0; l < lanes->size(); ++l) {
    Lane& lane = (*lanes)[l];
    // Its share is complete. It steps on, as lanes step together, uncounted.
    if (lane.episode >= options.episodes) continue;
    lane.episode_return += driver.reward(static_cast<int64_t>(l));
    ++lane.length;
    if (driver.done()[l]) {
      // Episodes end in any order; each has its place by its number.
      if (lane.episode >= static_cast<int64_t>(result->returns.size())) {
        result->returns.resize(lane.episode + 1);
        result->lengths.resize(lane.episode + 1);
      }
      result->returns[lane.episode] = lane.episode_return;
      result->lengths[lane.episode] = lane.length;
      lane = {.episode = lane.episode + static_cast<int64_t>(lanes->size())};
      ++ended;
    } else if (lane.length >= options.max_steps_per_episode) {
      return absl::DeadlineExceededError(absl::StrCat(
          "EvaluatePolicy: episode ", lane.episode, " in lane ", l,
          ": not done after ", lane.length,
          " steps, want an end within max_steps_per_episode = ",
          options.max_steps_per_episode, "; raise it or truncate episodes"));
    }
  }
  return ended;
}

absl::StatusOr<EvaluateResult> Run(Env& env, const EvaluateOptions& options,
                                   StepDriver& driver) {
  RILL_RETURN_IF_ERROR(env.Seed(options.seed));
  RILL_RETURN_IF_ERROR(driver.ResetAll());

  EvaluateResult result;
  std::vector<Lane> lanes(env.lanes());
  for (int64_t l = 0; l < env.lanes(); ++l) lanes[l].episode = l;
  int64_t left = options.episodes;
  for (int64_t step = 0;; ++step) {
    RILL_RETURN_IF_ERROR(
        driver
            .Act({.frames = options.frames + step * env.lanes(),
                  .step = step,
                  .explore = options.explore,
                  .seed = options.seed})
            .status());
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_RETURN_IF_ERROR(driver.ReadEnds());
    RILL_ASSIGN_OR_RETURN(const int64_t ended,
                          Account(driver, options, &lanes, &result));
    left -= ended;
    if (left == 0) break;
    RILL_RETURN_IF_ERROR(driver.Advance());
  }
  result.mean_return =
      std::accumulate(result.returns.begin(), result.returns.end(), 0.0) /
      static_cast<double>(options.episodes);
  return result;
}

// Runs, and leaves the environment as it was.
absl::StatusOr<EvaluateResult> Evaluate(Env& env, Policy& policy,
                                        const EvaluateOptions& options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(&env, &policy));
  const absl::StatusOr<TensorDict> state = env.SaveState();
  if (!state.ok() && !absl::IsUnimplemented(state.status())) {
    return state.status();
  }
  // No part of a state. They stay the same tensors, so values are copied back.
  RILL_ASSIGN_OR_RETURN(const TensorDict leaves, env.step().Clone());
  const bool has_learned = env.learns();
  env.SetLearning(false);
  absl::StatusOr<EvaluateResult> result = CatchExceptions(
      [&] { return Run(env, options, driver); }, "EvaluatePolicy");
  env.SetLearning(has_learned);
  if (!state.ok()) return result;
  TensorDict step = env.step();
  absl::Status restored = env.LoadState(*state);
  restored.Update(step.CopyFrom(leaves));
  if (result.ok()) {
    RILL_RETURN_IF_ERROR(restored)
        << "EvaluatePolicy: the state that " << env.name() << " had before";
  }
  return result;
}

}  // namespace

absl::StatusOr<EvaluateResult> EvaluatePolicy(Env& env, Policy& policy,
                                              const EvaluateOptions& options) {
  return CatchExceptions([&] { return Evaluate(env, policy, options); },
                         "EvaluatePolicy");
}

}  // namespace rill
