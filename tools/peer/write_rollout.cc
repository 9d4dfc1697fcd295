// SPDX-License-Identifier: Apache-2.0
//
// write_rollout FOLDER: steps of environments with transforms beside them, or
// wrapped, each kind in a folder of its own, for TorchRL to play again.
// beside.py has the same transforms.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/formats/memmap_directory.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/env/end_of_life.h"
#include "rill/transforms/env/random_truncation.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/env/terminate.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/target_return.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/unary.h"

namespace rill {
namespace {

// Pushes each lane to one side.
absl::Status Push(const TensorDict& /*root*/, Tensor* action) {
  for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
    action->data<int64_t>()[lane] = lane % 2;
  }
  return absl::OkStatus();
}

absl::Status WriteSteps(const std::string& folder) {
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

// Lives of the cart pole: fewer the further away it is.
absl::Status CountLives(const BoundLeaf& observation, const BoundLeaf& lives) {
  for (size_t lane = 0; lane < lives.As<int64_t>().size(); ++lane) {
    const float position = observation.As<float>()[4 * lane];
    lives.As<int64_t>()[lane] =
        9 - static_cast<int64_t>(20 * std::abs(position));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StepTransform>> MakePrimer(bool random) {
  TensorDictSpec primers;
  if (random) {
    RILL_RETURN_IF_ERROR(
        primers.Set("noise", LeafSpec::Bounded(DType::kFloat32, {2}, -2, 3)));
    return TensorDictPrimer::Create({.primers = primers, .random = true});
  }
  RILL_RETURN_IF_ERROR(
      primers.Set("goal", LeafSpec::Unbounded(DType::kFloat32, {2})));
  RILL_RETURN_IF_ERROR(
      primers.Set("hidden", LeafSpec::Unbounded(DType::kFloat64, {3})));
  return TensorDictPrimer::Create({.primers = primers,
                                   .default_value = 1.5,
                                   .default_values = {{"hidden", 0.25}}});
}

// What ends episodes, and what begins with them. "fallen" is the cart pole's
// own flag, "horizon" the draw of RandomTruncation for each step.
absl::Status WriteEnds(const std::string& folder) {
  constexpr int64_t kLanes = 6;
  constexpr int64_t kSteps = 60;
  RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = kLanes}));
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        Rename::Create({.in_keys = {"terminated"},
                                        .out_keys = {"fallen"},
                                        .create_copy = true}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Unary::Create(
          {.in_keys = {"observation"},
           .out_keys = {"lives"},
           .fn = CountLives,
           .spec_fn = [](const LeafSpec&) -> absl::StatusOr<LeafSpec> {
             return LeafSpec::Unbounded(DType::kInt64, {});
           }}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Terminate::Create({.stop = [](Terminate::Leaves step, int64_t lane) {
        return step[0].As<float>()[4 * lane + 1] > 1.25f;
      }}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), StepCounter::Create({}));
  const size_t truncation = transforms.size();
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      RandomTruncation::Create(
          {.min_horizon = 4, .max_horizon = 12, .prob = 0.75}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), EndOfLife::Create({}));
  for (const bool random : {false, true}) {
    RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), MakePrimer(random));
  }
  RILL_ASSIGN_OR_RETURN(
      const auto env,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  RILL_ASSIGN_OR_RETURN(Tensor horizons,
                        Tensor::Zeros(DType::kInt64, {kLanes, kSteps, 1}));
  const auto push = [&](const TensorDict& root, const ActContext& context,
                        Tensor* action) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict state, env->SaveTransforms());
    RILL_ASSIGN_OR_RETURN(const absl::Span<int64_t> drawn,
                          state.Flat<int64_t>(absl::StrCat(
                              "transforms/", truncation, "/state/horizons")));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      horizons.data<int64_t>()[lane * kSteps + context.step] = drawn[lane];
    }
    return Push(root, action);
  };
  RILL_ASSIGN_OR_RETURN(
      TensorDict steps,
      Rollout(*env, FunctionPolicy(push),
              {.max_steps = kSteps, .break_when_any_done = false}));
  RILL_RETURN_IF_ERROR(steps.Set("horizon", horizons));
  return SaveMemmapDirectory(steps, folder);
}

absl::Status WriteSwing(Env& env, int64_t steps, const std::string& folder) {
  const auto turn = [](const TensorDict& /*root*/, Tensor* action) {
    for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
      action->data<float>()[lane] = 0.5f - 0.25f * static_cast<float>(lane);
    }
    return absl::OkStatus();
  };
  RILL_ASSIGN_OR_RETURN(
      const TensorDict rollout,
      Rollout(env, FunctionPolicy(turn), {.max_steps = steps}));
  return SaveMemmapDirectory(rollout, folder);
}

// Pendulums that a wrapper steps, and the same ones stepped one by one.
absl::Status WriteWrapped(const std::string& folder) {
  RILL_ASSIGN_OR_RETURN(auto lanes, MakePendulum({.lanes = 4}));
  RILL_RETURN_IF_ERROR(
      WriteSwing(*lanes, 15, absl::StrCat(folder, "/not_skipped")));
  RILL_ASSIGN_OR_RETURN(lanes, MakePendulum({.lanes = 4}));
  RILL_ASSIGN_OR_RETURN(lanes,
                        MakeFrameSkip(std::move(lanes), {.frame_skip = 3}));
  RILL_RETURN_IF_ERROR(WriteSwing(*lanes, 5, absl::StrCat(folder, "/skipped")));
  RILL_ASSIGN_OR_RETURN(auto lane, MakePendulum());
  RILL_RETURN_IF_ERROR(
      WriteSwing(*lane, 9, absl::StrCat(folder, "/from_reset")));
  RILL_ASSIGN_OR_RETURN(lane, MakePendulum());
  RILL_ASSIGN_OR_RETURN(Tensor noop, Tensor::From<float>({0.5f}, {1}));
  RILL_ASSIGN_OR_RETURN(
      lane, MakeNoopReset(
                std::move(lane),
                {.noops = 4, .random = false, .noop_action = std::move(noop)}));
  return WriteSwing(*lane, 5, absl::StrCat(folder, "/after_noops"));
}

absl::Status Write(const std::string& folder) {
  RILL_RETURN_IF_ERROR(WriteSteps(absl::StrCat(folder, "/steps")));
  RILL_RETURN_IF_ERROR(WriteEnds(absl::StrCat(folder, "/ends")));
  return WriteWrapped(folder);
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
