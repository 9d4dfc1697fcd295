// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/discrete_action_projection.h"

#include <cstddef>
#include <cstring>
#include <optional>

#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_specs.h"
#include "rill/transforms/actions/choice_kernels.h"
#include "rill/transforms/env/device_draws.h"
#include "rill/transforms/env/lane_draws.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {
namespace {

using transforms_internal::ChoiceRows;
using transforms_internal::DeviceWork;
using transforms_internal::DrawStream;
using transforms_internal::LaneDraws;

constexpr absl::string_view kPlanSteps = "DiscreteActionProjection::PlanSteps";
constexpr absl::string_view kOnAction = "DiscreteActionProjection::OnAction";

class DiscreteActionProjectionTransform final : public StepTransform,
                                                public DeviceSteps {
 public:
  explicit DiscreteActionProjectionTransform(
      const DiscreteActionProjection::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "DiscreteActionProjection"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("num_actions_effective", options_.num_actions_effective)
        .Int("max_actions", options_.max_actions)
        .Unsigned("seed", options_.seed);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec inner,
        transforms_internal::FindSpec(kPlanSteps, "action", step));
    const bool is_one_hot = inner.domain == LeafSpec::Domain::kOneHot;
    const bool is_choice =
        is_one_hot || inner.domain == LeafSpec::Domain::kCategorical;
    // A mask of the environment would forbid some of the options that are
    // drawn.
    if (!is_choice || inner.num_categories != options_.num_actions_effective ||
        inner.mask() != nullptr) {
      return InvalidArgument(
          kPlanSteps, ": \"action\": got ", inner.ToString(),
          ", want Categorical or OneHot of num_actions_effective = ",
          options_.num_actions_effective, " options without a mask");
    }
    const LeafSpec outer =
        is_one_hot
            ? LeafSpec::OneHot(options_.max_actions, inner.dtype,
                               inner.shape.Prefix(inner.shape.rank() - 1))
            : LeafSpec::Categorical(options_.max_actions, inner.dtype,
                                    inner.shape);
    return transforms_internal::PlanAction(step, inner, outer);
  }

  absl::StatusOr<TensorDict> InitialState(int64_t lanes) const override {
    return LaneDraws::InitialState(lanes);
  }

  absl::Status OnSeed(uint64_t seed, TensorDict* state) const override {
    return LaneDraws::Restart(seed, state);
  }

  absl::Status OnAction(Leaves leaves, TensorDict* state) const override {
    const BoundLeaf& from = leaves[0];
    const BoundLeaf& to = leaves[1];
    // No choice can be past the end: the rows are equal, and no number is
    // drawn.
    if (options_.max_actions == options_.num_actions_effective) {
      std::memcpy(to.data, from.data,
                  static_cast<size_t>(from.rows * from.width));
      return absl::OkStatus();
    }
    // A one-hot row is longer for the policy; an index has the same shape.
    const bool is_one_hot = !(from.shape == to.shape);
    const ChoiceRows chosen = {
        .dtype = from.dtype,
        .is_one_hot = is_one_hot,
        .choices =
            from.shape.num_elements() / (is_one_hot ? options_.max_actions : 1),
        .options = options_.max_actions};
    // The rows of the environment: as many choices, of fewer options.
    ChoiceRows allowed = chosen;
    allowed.options = options_.num_actions_effective;
    std::optional<LaneDraws> draws;  // Made where one is wanted.
    for (int64_t lane = 0; lane < from.rows; ++lane) {
      for (int64_t choice = 0; choice < chosen.choices; ++choice) {
        int64_t option = chosen.Read(from.data + lane * from.width, choice);
        if (option < 0) {
          return InvalidArgument(kOnAction, ": action of lane ", lane,
                                 ", choice ", choice,
                                 ": got no single option, want one of [0, ",
                                 options_.max_actions - 1, "]");
        }
        // Draws happen for choices past the end only. So the number of draws
        // depends on the lane's actions, and on no other lane.
        if (option >= options_.num_actions_effective) {
          if (!draws.has_value()) {
            RILL_ASSIGN_OR_RETURN(
                draws, LaneDraws::Create(
                           kOnAction, DrawStream::kDiscreteActionProjection,
                           options_.seed, from.rows, &spare_, state));
          }
          option =
              draws->rng().UniformInt(draws->Next(static_cast<size_t>(lane)), 0,
                                      options_.num_actions_effective);
        }
        allowed.Write(choice, option, to.data + lane * to.width);
      }
    }
    return absl::OkStatus();
  }

  bool has_faults() const override { return true; }
  absl::Status FaultOf(int64_t fault) const override {
    return transforms_internal::WrongChoice(kOnAction, fault);
  }
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override {
    const Tensor& from = leaves[0];
    const Tensor& to = leaves[1];
    if (options_.max_actions == options_.num_actions_effective) {
      return to.CopyFromAsync(from, call.stream);
    }
    const bool is_one_hot = !(from.shape() == to.shape());
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    transforms_internal::ProjectChoicesKernel kernel = {
        .from = transforms_internal::ChoicesOf(from, is_one_hot),
        .to = transforms_internal::ChoicesOf(to, is_one_hot),
        .options = options_.max_actions,
        .effective = options_.num_actions_effective,
        .draws = {},
        .fault = call.fault};
    kernel.choices = kernel.from.row / kernel.from.Width(kernel.options);
    RILL_ASSIGN_OR_RETURN(
        kernel.draws,
        transforms_internal::DrawOnDevice(DrawStream::kDiscreteActionProjection,
                                          options_.seed, &work, state));
    RILL_RETURN_IF_ERROR(
        LaunchKernel(kernel, GridFor(kernel.draws.lanes), call.stream));
    return work.End();
  }

 private:
  const DiscreteActionProjection::Options options_;
  mutable DeviceWork device_work_{4};
  mutable transforms_internal::SpareTensors spare_{4};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> DiscreteActionProjection::Create(
    const Options& options) {
  if (options.num_actions_effective < 1 ||
      options.max_actions < options.num_actions_effective) {
    return InvalidArgument(
        "DiscreteActionProjection::Create: num_actions_effective, max_actions: "
        "got ",
        options.num_actions_effective, ", ", options.max_actions,
        ", want 1 <= num_actions_effective <= max_actions");
  }
  return std::make_unique<DiscreteActionProjectionTransform>(options);
}

}  // namespace rill
