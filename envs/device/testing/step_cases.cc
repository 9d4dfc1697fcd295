// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/testing/step_cases.h"

#include <cstddef>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/action_discretizer.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/actions/action_scaling.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/actions/flatten_action.h"
#include "rill/transforms/env/end_of_life.h"
#include "rill/transforms/env/random_truncation.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/env/terminate.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/target_return.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/structure/row_shapes.h"
#include "rill/transforms/structure/select.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"
#include "rill/transforms/values/hash.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/unary.h"
#include "rill/transforms/values/value_clips.h"

namespace rill {
namespace {

LeafSpec Torque() { return LeafSpec::Bounded(DType::kFloat32, {2, 2}, -2, 3); }

absl::Status Double(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < from.As<float>().size(); ++i) {
    to.As<float>()[i] = 2 * from.As<float>()[i];
  }
  return absl::OkStatus();
}

std::vector<TransformsUnderTest> StructureCases() {
  return {
      {ChainOf([] {
        return DTypeCast::Create({.dtype_in = DType::kFloat32,
                                  .dtype_out = DType::kFloat64,
                                  .in_keys = {"observation"},
                                  .out_keys = {"precise"}});
      })},
      {ChainOf([] {
        return DTypeCast::Create(
            {.dtype_in = DType::kInt64, .dtype_out = DType::kInt32});
      })},
      {ChainOf([] { return DoubleToFloat::Create({.in_keys = {"wide"}}); })},
      {ChainOf([] { return DoubleToFloat::Create({}); })},
      {ChainOf([] {
        return Select::Create({.selected_keys = {"observation", "wide"}});
      })},
      {ChainOf([] { return Exclude::Create({.excluded_keys = {"wide"}}); })},
      {ChainOf([] {
        return Rename::Create(
            {.in_keys = {"observation"}, .out_keys = {"state"}});
      })},
      {ChainOf([] {
        return Rename::Create({.in_keys = {"observation"},
                               .out_keys = {"state"},
                               .create_copy = true});
      })},
      {ChainOf(
          [] {
            return Rename::Create({.in_keys = {"observation"},
                                   .out_keys = {"left"},
                                   .create_copy = true});
          },
          [] {
            return CatTensors::Create(
                {.in_keys = {"observation", "left"}, .out_key = "both"});
          })},
      {ChainOf(
          [] {
            return Rename::Create({.in_keys = {"observation"},
                                   .out_keys = {"left"},
                                   .create_copy = true});
          },
          [] {
            return StackTensors::Create({.in_keys = {"observation", "left"},
                                         .out_key = "both",
                                         .dim = -1});
          })},
      {ChainOf([] {
        return FlattenObservation::Create(
            {.first_dim = -3, .last_dim = -1, .in_keys = {"pixels"}});
      })},
      {ChainOf([] {
        return Unsqueeze::Create({.dim = -1, .in_keys = {"observation"}});
      })},
      {ChainOf(
          [] { return Squeeze::Create({.dim = -1, .in_keys = {"lives"}}); })},
      {ChainOf([] {
        return Permute::Create({.dims = {-1, -3, -2}, .in_keys = {"pixels"}});
      })},
      {ChainOf([] {
        return ExpandAs::Create({.in_key = "lives",
                                 .ref_key = "observation",
                                 .out_key = "many_lives"});
      })},
      {ChainOf([] {
        return ExpandAs::Create({.in_key = "reward",
                                 .ref_key = "observation",
                                 .out_key = "rewards"});
      })},
  };
}

std::vector<TransformsUnderTest> ImageCases() {
  return {
      {ChainOf([] { return ToTensorImage::Create({}); })},
      {ChainOf([] {
        return Crop::Create(
            {.w = 2, .h = 3, .top = 1, .left = 2, .in_keys = {"planes"}});
      })},
      {ChainOf(
          [] { return CenterCrop::Create({.w = 2, .in_keys = {"planes"}}); })},
      {ChainOf([] { return Resize::Create({.w = 4, .in_keys = {"planes"}}); })},
      {ChainOf([] { return GrayScale::Create({.in_keys = {"planes"}}); })},
      {ChainOf([] {
        return CatFrames::Create({.num_frames = 3,
                                  .dim = -2,
                                  .in_keys = {"planes"},
                                  .out_keys = {"stack"}});
      })},
      {ChainOf([] {
        return CatFrames::Create({.num_frames = 4,
                                  .in_keys = {"observation"},
                                  .padding = CatFrames::Padding::kConstant,
                                  .padding_value = 0.5});
      })},
      {ChainOf([] {
        return TimeMaxPool::Create({.num_steps = 4, .in_keys = {"pixels"}});
      })},
      {ChainOf([] {
        return TimeMaxPool::Create(
            {.num_steps = 2, .in_keys = {"wide"}, .out_keys = {"widest"}});
      })},
      {ChainOf([] {
        return TimeMaxPool::Create(
            {.num_steps = 1, .in_keys = {"observation"}});
      })},
  };
}

std::vector<TransformsUnderTest> ValueCases() {
  return {
      {ChainOf([] {
        return ObservationNorm::Create({.loc = {0.3}, .scale = {1.7}});
      })},
      {ChainOf([] {
        return Clip::Create(
            {.in_keys = {"observation"}, .low = -0.5, .high = 1});
      })},
      {ChainOf([] {
        return RewardClipping::Create({.clamp_min = -0.7, .clamp_max = 0.2});
      })},
      {ChainOf([] { return BinarizeReward::Create({}); })},
      {ChainOf([] { return Sign::Create({.in_keys = {"next/reward"}}); })},
      {ChainOf([] {
        return Unary::Create({.in_keys = {"observation"}, .fn = Double});
      })},
      {ChainOf([] {
        return Hash::Create({.in_keys = {"observation"}, .out_keys = {"hash"}});
      })},
      {ChainOf([] { return FiniteTensorDictCheck::Create(); })},
      {ChainOf([] { return RewardScaling::Create({.scale = 0.3, .loc = 1}); })},
  };
}

std::vector<TransformsUnderTest> EpisodeCases() {
  return {
      {ChainOf([] { return InitTracker::Create({}); })},
      {ChainOf([] { return TrajCounter::Create({}); })},
      {ChainOf([] { return TargetReturn::Create({.target_return = 9.3}); })},
      {ChainOf([] {
        return TargetReturn::Create(
            {.target_return = 9.3, .mode = TargetReturn::Mode::kConstant});
      })},
      {ChainOf([] {
        return VecNorm::Create(
            {.in_keys = {"observation", "wide", "next/reward"},
             .shapes = {{4}, {3}, {1}},
             .out_keys = {"observation", "normal", "next/reward"},
             .decay = 1});
      })},
      {ChainOf([] { return ReturnScaling::Create({.gamma = 0.9}); })},
      {ChainOf([] { return StepCounter::Create({}); })},
      {ChainOf([] { return StepCounter::Create({.max_steps = 4}); })},
      {ChainOf([] {
        return StepCounter::Create({.max_steps = 3, .update_done = false});
      })},
      {ChainOf([] { return RewardSum::Create({}); })},
  };
}

std::vector<TransformsUnderTest> ActionCases() {
  std::vector<TransformsUnderTest> cases = {
      {ChainOf([] { return ActionScaling::Create({.spec = Torque()}); }),
       Torque()},
      {ChainOf([] { return FlattenAction::Create({}); }), Torque()},
      {ChainOf([] {
        return ActionMask::Create({.mask_key = "legal", .replace = true});
      })},
      {ChainOf([] {
         return ActionMask::Create({.mask_key = "legal", .replace = true});
       }),
       LeafSpec::OneHot(3)},
      {ChainOf([] {
        return DiscreteActionProjection::Create(
            {.num_actions_effective = 3, .max_actions = 7, .seed = 4});
      })},
      {ChainOf([] {
         return DiscreteActionProjection::Create(
             {.num_actions_effective = 3, .max_actions = 3});
       }),
       LeafSpec::OneHot(3)},
  };
  using Sampling = ActionDiscretizer::Sampling;
  for (const bool categorical : {true, false}) {
    for (const Sampling sampling : {Sampling::kMedian, Sampling::kLow,
                                    Sampling::kHigh, Sampling::kRandom}) {
      cases.push_back({ChainOf([=] {
                         return ActionDiscretizer::Create(
                             {.spec = Torque(),
                              .num_intervals = {3, 5},
                              .sampling = sampling,
                              .categorical = categorical,
                              .seed = 2});
                       }),
                       Torque()});
    }
  }
  // Numbers of which each bit is seen.
  const LeafSpec fine = LeafSpec::Bounded(DType::kFloat64, {7}, -0.1, 0.3);
  cases.push_back({ChainOf([fine] {
                     return ActionDiscretizer::Create(
                         {.spec = fine,
                          .num_intervals = {1000},
                          .sampling = Sampling::kRandom});
                   }),
                   fine});
  return cases;
}

std::vector<TransformsUnderTest> PlumbingCases() {
  TensorDictSpec primers;
  RILL_EXPECT_OK(
      primers.Set("hidden", LeafSpec::Unbounded(DType::kFloat32, {3})));
  RILL_EXPECT_OK(
      primers.Set("task", LeafSpec::Bounded(DType::kUInt8, {}, 0, 9)));
  return {
      {ChainOf([primers] {
        return TensorDictPrimer::Create(
            {.primers = primers, .default_values = {{"task", 5}}});
      })},
      {ChainOf([] {
        return Terminate::Create(
            {.in_keys = {"next/reward"},
             .stop = [](StepTransform::Leaves step, int64_t lane) {
               return step[0].As<float>()[static_cast<size_t>(lane)] > 1.5f;
             }});
      })},
      {ChainOf([] { return StepCounter::Create({}); },
               [] {
                 return RandomTruncation::Create({.min_horizon = 2,
                                                  .max_horizon = 5,
                                                  .prob = 0.6,
                                                  .first_episode_prob = 0.3,
                                                  .seed = 5});
               })},
      {ChainOf([] { return EndOfLife::Create({}); })},
  };
}

}  // namespace

std::vector<TransformsUnderTest> StepCases() {
  std::vector<TransformsUnderTest> all;
  for (auto cases : {StructureCases(), ImageCases(), ValueCases(),
                     EpisodeCases(), ActionCases(), PlumbingCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace rill
