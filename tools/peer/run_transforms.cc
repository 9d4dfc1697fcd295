// SPDX-License-Identifier: Apache-2.0
//
// run_transforms CASE FROM TO [FROM TO ...]: loads the batch at each FROM, a
// directory of tensordict's. It runs the transform that the case names and
// saves the result at TO. A state goes on from one batch to the next.
// transforms.py has the same cases.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/estimators/value_estimators.h"
#include "rill/formats/memmap_directory.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tools/peer/run_actions.h"
#include "rill/transforms/actions/action_chunk.h"
#include "rill/transforms/actions/action_scaling.h"
#include "rill/transforms/actions/flatten_action.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/episodes/multi_step.h"
#include "rill/transforms/episodes/next_observation_delta.h"
#include "rill/transforms/episodes/policy_age_filter.h"
#include "rill/transforms/episodes/random_crop.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/split_trajectories.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/structure/expand_as.h"
#include "rill/transforms/structure/flatten_tensor_dict.h"
#include "rill/transforms/structure/remove_empty_specs.h"
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

using Made = absl::StatusOr<std::unique_ptr<BatchTransform>>;

struct Case {
  absl::string_view name;  // The part behind "/" is about options.
  std::function<Made(const TensorDict& batch)> make;  // From the first batch.
  bool is_inverse = false;
};

template <typename T>
std::function<Made(const TensorDict&)> With(typename T::Options options) {
  return [options = std::move(options)](const TensorDict&) -> Made {
    return T::Create(options);
  };
}

template <typename T>
Made WithoutOptions(const TensorDict&) {
  return T::Create();
}

Made Chain(const TensorDict&) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        RewardScaling::Create({.scale = 0.1, .loc = 0.7}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Clip::Create({.in_keys = {"next/reward"}, .low = 0.65}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        Rename::Create({.in_keys = {"next/reward"},
                                        .out_keys = {"next/gain"},
                                        .in_keys_inv = {"action"},
                                        .out_keys_inv = {"torque"}}));
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      Unsqueeze::Create({.dim = -1, .in_keys = {"next/gain"}}));
  RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
                        DTypeCast::Create({.dtype_in = DType::kInt32,
                                           .dtype_out = DType::kInt64,
                                           .in_keys_inv = {"torque"}}));
  return Compose::Create(std::move(transforms));
}

std::vector<Case> Structure() {
  return {
      {"Compose", Chain},
      {"Compose/inverse", Chain, true},
      {"DeviceCast", With<DeviceCast>({.device = Device::Cpu()})},
      {"FiniteTensorDictCheck", WithoutOptions<FiniteTensorDictCheck>},
      {"DTypeCast", With<DTypeCast>({.dtype_in = DType::kInt64,
                                     .dtype_out = DType::kInt32,
                                     .in_keys = {"action"}})},
      {"DTypeCast/all", With<DTypeCast>({.dtype_in = DType::kFloat32,
                                         .dtype_out = DType::kFloat64})},
      {"DTypeCast/inverse",
       With<DTypeCast>({.dtype_in = DType::kInt32,
                        .dtype_out = DType::kInt64,
                        .in_keys_inv = {"action"}}),
       true},
      {"DoubleToFloat", With<DoubleToFloat>({.in_keys = {"info"}})},
      {"DoubleToFloat/all", With<DoubleToFloat>({})},
      {"Select", With<Select>({.selected_keys = {"observation", "next/reward"},
                               .keep_rewards = false,
                               .keep_dones = false})},
      {"Select/dictionary",
       With<Select>({.selected_keys = {"action", "next"}})},
      {"Exclude",
       With<Exclude>({.excluded_keys = {"info", "next/observation"}})},
      {"Exclude/inverse",
       With<Exclude>({.excluded_keys = {"info"}, .inverse = true}), true},
      {"Rename", With<Rename>({.in_keys = {"observation", "next/reward"},
                               .out_keys = {"state", "next/gain"}})},
      {"Rename/copy", With<Rename>({.in_keys = {"observation"},
                                    .out_keys = {"state"},
                                    .create_copy = true})},
      {"Rename/inverse",
       With<Rename>(
           {.in_keys_inv = {"state"}, .out_keys_inv = {"observation"}}),
       true},
      {"FlattenObservation",
       With<FlattenObservation>({.first_dim = -3, .last_dim = -1})},
      {"FlattenObservation/part",
       With<FlattenObservation>(
           {.first_dim = -2, .last_dim = -1, .out_keys = {"flat"}})},
      {"Permute", With<Permute>({.dims = {-1, -3, -2}, .in_keys = {"pixels"}})},
      {"Permute/inverse",
       With<Permute>({.dims = {-1, -3, -2}, .in_keys_inv = {"pixels"}}), true},
      {"Squeeze", With<Squeeze>({.dim = -1, .in_keys = {"next/reward"}})},
      {"Unsqueeze", With<Unsqueeze>({.dim = -2, .in_keys = {"observation"}})},
      {"Unsqueeze/inverse",
       With<Unsqueeze>({.dim = -1, .in_keys_inv = {"next/reward"}}), true},
      {"CatTensors",
       With<CatTensors>({.in_keys = {"velocity", "observation"}})},
      {"CatTensors/unsorted",
       With<CatTensors>({.in_keys = {"velocity", "observation"},
                         .out_key = "joined",
                         .del_keys = false,
                         .sort = false})},
      {"Stack", With<StackTensors>({.in_keys = {"velocity", "observation"},
                                    .out_key = "both"})},
      {"ExpandAs",
       With<ExpandAs>(
           {.in_key = "next/done", .ref_key = "action", .out_key = "ends"})},
      {"RemoveEmptySpecs", WithoutOptions<RemoveEmptySpecs>},
      {"FlattenTensorDict", With<FlattenTensorDict>({}), true},
      {"NextStateReconstructor",
       With<NextStateReconstructor>({.traj_key = "traj_ids"})},
      {"Stack/before",
       With<StackTensors>({.in_keys = {"velocity", "observation"},
                           .out_key = "both",
                           .dim = -2,
                           .del_keys = false})},
  };
}

absl::Status SquareLessHalf(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < to.As<float>().size(); ++i) {
    const float x = from.As<float>()[i];
    to.As<float>()[i] = x * x - 0.5f;
  }
  return absl::OkStatus();
}

absl::Status Floor(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < to.As<int64_t>().size(); ++i) {
    to.As<int64_t>()[i] = static_cast<int64_t>(std::floor(from.As<float>()[i]));
  }
  return absl::OkStatus();
}

absl::Status Halve(const BoundLeaf& from, const BoundLeaf& to) {
  for (size_t i = 0; i < to.As<float>().size(); ++i) {
    to.As<float>()[i] = from.As<float>()[i] / 2;
  }
  return absl::OkStatus();
}

std::vector<Case> Values() {
  return {
      {"ObservationNorm", With<ObservationNorm>({.loc = {0.5, -1.25, 0, 3},
                                                 .scale = {2, 0.75, -1, 0.1}})},
      {"ObservationNorm/standard_normal",
       With<ObservationNorm>({.loc = {0.5, -1.25, 0, 3},
                              .scale = {2, 0.75, 1, 0.1},
                              .out_keys = {"normal"},
                              .standard_normal = true})},
      {"ObservationNorm/inverse",
       With<ObservationNorm>({.loc = {0.5},
                              .scale = {0.3},
                              .in_keys_inv = {"observation"},
                              .standard_normal = true}),
       true},
      {"ObservationNorm/init_stats",
       [](const TensorDict& batch) -> Made {
         RILL_ASSIGN_OR_RETURN(
             const auto stats,
             ObservationNorm::InitStats([&] { return batch; }, {}));
         return ObservationNorm::Create(
             {.loc = stats.loc, .scale = stats.scale});
       }},
      {"ObservationNorm/init_stats_standard_normal",
       [](const TensorDict& batch) -> Made {
         RILL_ASSIGN_OR_RETURN(
             const auto stats,
             ObservationNorm::InitStats(
                 [&] { return batch; },
                 {.reduce_dim = {-1}, .standard_normal = true}));
         return ObservationNorm::Create(
             {.loc = stats.loc, .scale = stats.scale, .standard_normal = true});
       }},
      {"RewardScaling", With<RewardScaling>({.scale = 0.1, .loc = 0.7})},
      {"RewardScaling/standard_normal",
       With<RewardScaling>(
           {.scale = 0.1, .loc = 0.7, .standard_normal = true})},
      {"RewardClipping",
       With<RewardClipping>({.clamp_min = -0.5, .clamp_max = 1})},
      {"BinarizeReward", With<BinarizeReward>({})},
      {"Sign", With<Sign>({.in_keys = {"next/reward", "action"}})},
      {"Clip",
       With<Clip>(
           {.in_keys = {"observation", "info"}, .low = -0.5, .high = 1})},
      {"Clip/inverse", With<Clip>({.in_keys_inv = {"observation"}, .low = 0}),
       true},
      {"Hash", With<Hash>({.in_keys = {"action"}, .out_keys = {"hash"}})},
      {"Unary",
       With<Unary>({.in_keys = {"observation"}, .fn = SquareLessHalf})},
      {"Unary/dtype",
       With<Unary>(
           {.in_keys = {"observation"},
            .out_keys = {"whole"},
            .fn = Floor,
            .spec_fn = [](const LeafSpec& leaf) -> absl::StatusOr<LeafSpec> {
              return LeafSpec::Unbounded(DType::kInt64, leaf.shape);
            }})},
      {"Unary/inverse",
       With<Unary>({.in_keys_inv = {"observation"},
                    .fn = SquareLessHalf,
                    .inv_fn = Halve}),
       true},
  };
}

std::vector<Case> Actions() {
  return {
      {"ActionScaling", With<ActionScaling>({.loc = {0.5, -1.25, 0, 3},
                                             .scale = {2, 0.75, -1, 0.1},
                                             .in_keys = {"observation"}})},
      {"ActionScaling/inverse",
       With<ActionScaling>({.loc = {0.5},
                            .scale = {2},
                            .standard_normal = false,
                            .in_keys_inv = {"observation"}}),
       true},
      {"FlattenAction",
       With<FlattenAction>(
           {.first_dim = -3, .last_dim = -2, .in_keys = {"pixels"}})},
      {"FlattenAction/inverse",
       With<FlattenAction>(
           {.in_keys = {"observation"}, .action_shape = {2, 2}}),
       true},
      {"ActionChunk", With<ActionChunk>({.chunk_size = 3})},
      {"ActionChunk/endless",
       With<ActionChunk>({.chunk_size = 4, .done_key = ""})},
  };
}

std::vector<Case> Images() {
  return {
      {"ToTensorImage", With<ToTensorImage>({})},
      {"ToTensorImage/unscaled", With<ToTensorImage>({.from_int = false,
                                                      .dtype = DType::kFloat64,
                                                      .out_keys = {"float"}})},
      {"GrayScale", With<GrayScale>({.in_keys = {"image", "bytes"}})},
      {"Resize", With<Resize>({.w = 5, .h = 4, .in_keys = {"image"}})},
      {"Resize/larger", With<Resize>({.w = 11, .h = 13, .in_keys = {"image"}})},
      {"Resize/nearest",
       With<Resize>({.w = 5,
                     .h = 13,
                     .interpolation = Resize::Interpolation::kNearest,
                     .in_keys = {"image", "bytes"}})},
      {"CenterCrop", With<CenterCrop>({.w = 3, .h = 5, .in_keys = {"image"}})},
      {"CenterCrop/odd",
       With<CenterCrop>({.w = 4, .h = 4, .in_keys = {"image"}})},
      {"Crop",
       With<Crop>({.w = 3, .h = 5, .top = 2, .left = 1, .in_keys = {"bytes"}})},
      {"CatFrames",
       With<CatFrames>(
           {.num_frames = 3, .in_keys = {"observation", "next/observation"}})},
      {"CatFrames/constant",
       With<CatFrames>({.num_frames = 4,
                        .dim = -3,
                        .in_keys = {"pixels"},
                        .out_keys = {"frames"},
                        .padding = CatFrames::Padding::kConstant,
                        .padding_value = 7})},
  };
}

std::vector<Case> Episodes() {
  return {
      {"NextObservationDelta", With<NextObservationDelta>({})},
      {"NextObservationDelta/kept",
       With<NextObservationDelta>(
           {.delta_dtype = DType::kBFloat16, .drop_delta = false})},
      {"NextObservationDelta/inverse", With<NextObservationDelta>({}), true},
      {"RandomCropTensorDict",
       With<RandomCropTensorDict>({.sub_seq_len = 5, .mask_key = "mask"})},
      {"PolicyAgeFilter",
       With<PolicyAgeFilter>(
           {.max_policy_lag = 4, .current_version = [] { return 9; }})},
  };
}

// SplitTrajectories is a function of a batch, no transform: here as one.
absl::Status SplitInPlace(TensorDict* batch) {
  RILL_ASSIGN_OR_RETURN(
      *batch, SplitTrajectories(
                  *batch, {.trajectory_key = "traj_ids", .mask_key = "mask"}));
  return absl::OkStatus();
}

std::vector<Case> Returns() {
  return {
      {"Reward2Go", With<Reward2Go>({.gamma = 0.9}), true},
      {"DensifyReward",
       With<DensifyReward>({.reward_key_out = "next/dense", .discount = 0.95})},
      {"MultiStep",
       [](const TensorDict& batch) -> Made {
         return MultiStep::Create({.n_steps = 3,
                                   .gamma = 0.9,
                                   .rows = TensorDictSpec::Of(batch),
                                   .lanes = batch.batch_shape()[0]});
       },
       true},
      {"SplitTrajectories", With<FunctionTransform>({.forward = SplitInPlace})},
      {"SplitTrajectories/ends",
       With<FunctionTransform>({.forward = SplitInPlace})},
      {"TD0Estimator", With<TD0Estimator>({.gamma = 0.97})},
      {"TD1Estimator", With<TD1Estimator>({.gamma = 0.97})},
      {"TDLambdaEstimator",
       With<TDLambdaEstimator>({.gamma = 0.97, .lmbda = 0.8})},
      {"GAE", With<GAE>({.gamma = 0.97, .lmbda = 0.8})},
      {"GAE/average_gae",
       With<GAE>({.gamma = 0.97, .lmbda = 0.8, .average_gae = true})},
      {"VTrace",
       With<VTrace>({.gamma = 0.97, .rho_thresh = 1.1, .c_thresh = 0.9})},
  };
}

absl::StatusOr<Case> FindCase(absl::string_view name) {
  for (const auto cases :
       {Structure, Values, Actions, Images, Episodes, Returns}) {
    for (const Case& found : cases()) {
      if (found.name == name) return found;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("got the case \"", name,
                   "\", want one of those in tools/peer/run_transforms.cc"));
}

// Runs a transform that works on actions alone, which has no batch form and
// keeps no state between batches.
absl::Status RunBesideEnv(const ActionCase& actions,
                          const std::vector<std::string>& paths) {
  for (size_t i = 0; i < paths.size(); i += 2) {
    RILL_ASSIGN_OR_RETURN(const TensorDict stored,
                          LoadMemmapDirectory(paths[i]));
    RILL_ASSIGN_OR_RETURN(TensorDict batch, stored.Clone());
    RILL_RETURN_IF_ERROR(RunActions(actions, &batch));
    RILL_RETURN_IF_ERROR(SaveMemmapDirectory(batch, paths[i + 1]));
  }
  return absl::OkStatus();
}

absl::Status Run(absl::string_view name,
                 const std::vector<std::string>& paths) {
  if (const ActionCase* const actions = FindActionCase(name)) {
    return RunBesideEnv(*actions, paths);
  }
  RILL_ASSIGN_OR_RETURN(const Case found, FindCase(name));
  RILL_ASSIGN_OR_RETURN(const TensorDict first, LoadMemmapDirectory(paths[0]));
  RILL_ASSIGN_OR_RETURN(const auto transform, found.make(first));
  RILL_ASSIGN_OR_RETURN(TensorDict state, transform->InitialState());
  for (size_t i = 0; i < paths.size(); i += 2) {
    RILL_ASSIGN_OR_RETURN(const TensorDict stored,
                          LoadMemmapDirectory(paths[i]));
    RILL_ASSIGN_OR_RETURN(TensorDict batch, stored.Clone());
    RILL_RETURN_IF_ERROR(found.is_inverse ? transform->Inverse(&batch, &state)
                                          : transform->Forward(&batch, &state));
    RILL_RETURN_IF_ERROR(SaveMemmapDirectory(batch, paths[i + 1]));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  if (argc < 4 || argc % 2 != 0) {
    std::fputs("usage: run_transforms CASE FROM TO [FROM TO ...]\n", stderr);
    return 1;
  }
  const absl::Status status =
      rill::Run(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
