// SPDX-License-Identifier: Apache-2.0
// A lane's horizon is drawn at its reset and kept in the state; a step only
// compares. The number of a lane's draws is the number of its episodes.
#include "rill/transforms/env/random_truncation.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/env/device_draws.h"
#include "rill/transforms/env/draw_kernels.h"
#include "rill/transforms/env/lane_draws.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;
using transforms_internal::DrawStream;
using transforms_internal::LaneDraws;

constexpr absl::string_view kCreate = "RandomTruncation::Create";
constexpr absl::string_view kPlanSteps = "RandomTruncation::PlanSteps";
constexpr absl::string_view kHorizons = "horizons";

absl::Status CheckLanes(size_t horizons, size_t lanes) {
  if (horizons == lanes) return absl::OkStatus();
  return FailedPrecondition(
      "RandomTruncation: state: \"", kHorizons, "\": got ", horizons,
      ", want that of InitialState for ", lanes, " lanes");
}

class RandomTruncationTransform final : public StepTransform,
                                        public DeviceSteps {
 public:
  explicit RandomTruncationTransform(const RandomTruncation::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "RandomTruncation"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Int("min_horizon", options_.min_horizon)
        .Int("max_horizon", options_.max_horizon)
        .Double("prob", options_.prob);
    if (options_.first_episode_prob.has_value()) {
      values.Double("first_episode_prob", *options_.first_episode_prob);
    } else {
      values.None("first_episode_prob");
    }
    return values.Unsigned("seed", options_.seed)
        .Text("step_count_key", options_.step_count_key)
        .Text("truncated_key", options_.truncated_key)
        .Text("done_key", options_.done_key);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    const std::string count = absl::StrCat("next/", options_.step_count_key);
    const LeafSpec* const leaf = step.Find(count);
    if (leaf == nullptr || leaf->dtype != DType::kInt64 ||
        !(leaf->shape == Shape({1}))) {
      return InvalidArgument(
          kPlanSteps, ": \"", count, "\": got ",
          leaf == nullptr ? "none" : leaf->ToString(),
          ", want int64[1]; put a StepCounter before this transform");
    }
    transforms_internal::AddLeaf(count, *leaf, LeafUse::kRead, &plan);
    for (const std::string& key : {options_.truncated_key, options_.done_key}) {
      RILL_RETURN_IF_ERROR(transforms_internal::AddFlag(
          kPlanSteps, absl::StrCat("next/", key), LeafUse::kUpdate, &plan));
    }
    return plan;
  }

  absl::StatusOr<TensorDict> InitialState(int64_t lanes) const override {
    RILL_ASSIGN_OR_RETURN(TensorDict state, LaneDraws::InitialState(lanes));
    RILL_ASSIGN_OR_RETURN(const Tensor horizons,
                          Tensor::Zeros(DType::kInt64, {lanes, 1}));
    RILL_RETURN_IF_ERROR(state.Set(kHorizons, horizons));
    return state;
  }

  absl::Status OnSeed(uint64_t seed, TensorDict* state) const override {
    return LaneDraws::Restart(seed, state);
  }

  // Both leaves of the state are copied and then set, so that an error leaves
  // the caller's state whole.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves /*leaves*/,
                       TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(
        LaneDraws draws,
        LaneDraws::Create("RandomTruncation::OnReset",
                          DrawStream::kRandomTruncation, options_.seed,
                          static_cast<int64_t>(mask.size()), &spare_, state));
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kHorizons));
    RILL_ASSIGN_OR_RETURN(const Tensor changed, spare_.Copy(before));
    RILL_ASSIGN_OR_RETURN(const absl::Span<int64_t> horizons,
                          changed.Flat<int64_t>());
    RILL_RETURN_IF_ERROR(CheckLanes(horizons.size(), mask.size()));
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) horizons[lane] = DrawHorizon(lane, &draws);
    }
    return state->Set(kHorizons, changed);
  }

  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    const absl::Span<const int64_t> counts = leaves[0].As<int64_t>();
    RILL_ASSIGN_OR_RETURN(const absl::Span<const int64_t> horizons,
                          state->Flat<int64_t>(kHorizons));
    RILL_RETURN_IF_ERROR(CheckLanes(horizons.size(), counts.size()));
    for (const BoundLeaf& leaf : leaves.subspan(1)) {
      const absl::Span<bool> flags = leaf.As<bool>();
      for (size_t lane = 0; lane < flags.size(); ++lane) {
        flags[lane] = flags[lane] || counts[lane] >= horizons[lane];
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors /*leaves*/,
                             TensorDict* state) const override {
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    RILL_ASSIGN_OR_RETURN(const auto draws, transforms_internal::DrawOnDevice(
                                                DrawStream::kRandomTruncation,
                                                options_.seed, &work, state));
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kHorizons));
    RILL_ASSIGN_OR_RETURN(Tensor after,
                          work.Take(before.dtype(), before.shape()));
    work.Keep(before);
    const transforms_internal::HorizonKernel kernel = {
        .draws = draws,
        .mask = call.mask,
        .before = before.data<int64_t>(),
        .after = after.data<int64_t>(),
        .min_horizon = options_.min_horizon,
        .max_horizon = options_.max_horizon,
        .prob = options_.prob,
        .second_prob = options_.first_episode_prob.value_or(options_.prob)};
    RILL_RETURN_IF_ERROR(
        LaunchKernel(kernel, GridFor(draws.lanes), call.stream));
    RILL_RETURN_IF_ERROR(work.End());
    return state->Set(kHorizons, std::move(after));
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor horizons, state->Get(kHorizons));
    const int64_t lanes = horizons.num_elements();
    transforms_internal::CutKernel kernel = {
        .counts = leaves[0].data<int64_t>(),
        .horizons = horizons.data<int64_t>(),
        .lanes = lanes};
    for (int k = 0; k < transforms_internal::CutKernel::kFlags; ++k) {
      kernel.flags[k] = leaves[static_cast<size_t>(k) + 1].data<uint8_t>();
    }
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    work.Keep(horizons);
    RILL_RETURN_IF_ERROR(LaunchKernel(kernel, GridFor(lanes), call.stream));
    return work.End();
  }

 private:
  // Draws number 0 of the lane's batch for the length, number 1 for the choice:
  // one batch of the generator an episode, whichever branch is taken.
  int64_t DrawHorizon(size_t lane, LaneDraws* draws) const {
    const int64_t episode = draws->count(lane);
    const uint64_t batch = draws->Next(lane);
    const Rng& rng = draws->rng();
    // The first episode spreads the lanes over all lengths.
    if (episode == 0) return 1 + rng.UniformInt(batch, 0, options_.max_horizon);
    const double prob =
        episode == 1 ? options_.first_episode_prob.value_or(options_.prob)
                     : options_.prob;
    if (rng.UniformDouble(batch, 1) >= prob) return options_.max_horizon;
    // The ends are inclusive. min_horizon >= 1, so the count does not overflow.
    return options_.min_horizon +
           rng.UniformInt(batch, 0,
                          options_.max_horizon - options_.min_horizon + 1);
  }

  const RandomTruncation::Options options_;
  mutable transforms_internal::SpareTensors spare_{4};
  mutable DeviceWork device_work_{6};
};

absl::Status CheckProb(absl::string_view option, double prob) {
  if (prob >= 0 && prob <= 1) return absl::OkStatus();
  return InvalidArgument(kCreate, ": ", option, ": got ", prob,
                         ", want a number in [0, 1]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> RandomTruncation::Create(
    const Options& options) {
  if (options.min_horizon < 1 || options.max_horizon < options.min_horizon) {
    return InvalidArgument(kCreate, ": min_horizon, max_horizon: got ",
                           options.min_horizon, ", ", options.max_horizon,
                           ", want 1 <= min_horizon <= max_horizon");
  }
  RILL_RETURN_IF_ERROR(CheckProb("prob", options.prob));
  RILL_RETURN_IF_ERROR(CheckProb(
      "first_episode_prob", options.first_episode_prob.value_or(options.prob)));
  RILL_RETURN_IF_ERROR(CheckKey(options.step_count_key))
      << kCreate << ": step_count_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.truncated_key))
      << kCreate << ": truncated_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key)) << kCreate << ": done_key";
  return std::make_unique<RandomTruncationTransform>(options);
}

}  // namespace rill
