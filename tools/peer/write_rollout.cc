// SPDX-License-Identifier: Apache-2.0
//
// write_rollout FOLDER: steps of cart poles with transforms beside them, for
// TorchRL to play again. transforms.py has the same transforms.

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/transformed_env.h"
#include "rill/formats/memmap_directory.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/target_return.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/values/observation_norm.h"

namespace rill {
namespace {

// Pushes each lane to one side.
absl::Status Push(const TensorDict& /*root*/, Tensor* action) {
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    action->data<int64_t>()[lane] = lane % 2;
  }
  return absl::OkStatus();
}

absl::Status Write(const std::string& folder) {
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 6}));
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        RewardScaling::Create({.scale = 0.3, .loc = 0.1}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        ObservationNorm::Create({.loc = {0.5},
                                                 .scale = {2},
                                                 .out_keys = {"normal"},
                                                 .standard_normal = true}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        CatFrames::Create({.num_frames = 3,
                                           .in_keys = {"observation"},
                                           .out_keys = {"frames"}}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        StepCounter::Create({.max_steps = 9}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        TargetReturn::Create({.target_return = 5}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), InitTracker::Create({}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), TrajCounter::Create({}));
  // Positive, as TorchRL takes 0 for what is before an episode.
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      ObservationNorm::Create(
          {.loc = {10}, .scale = {1}, .out_keys = {"positive"}}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      TimeMaxPool::Create(
          {.num_steps = 3, .in_keys = {"positive"}, .out_keys = {"largest"}}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        VecNorm::Create({.in_keys = {"observation"},
                                         .shapes = {{4}},
                                         .out_keys = {"standard"}}));
  RILL_ASSIGN_OR_RETURN(
      const auto env,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  RILL_ASSIGN_OR_RETURN(
      const TensorDict steps,
      Rollout(*env, FunctionPolicy(Push),
              {.max_steps = 40, .break_when_any_done = false}));
  return SaveMemmapDirectory(steps, folder);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_rollout FOLDER\n", stderr);
    return 1;
  }
  const absl::Status status = rill::Write(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
