// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_mask.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_specs.h"
#include "rill/transforms/actions/choice_kernels.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::ChoiceRows;
using transforms_internal::FindSpec;
using transforms_internal::Misfit;

constexpr absl::string_view kPlanSteps = "ActionMask::PlanSteps";
constexpr absl::string_view kOnAction = "ActionMask::OnAction";

class ActionMaskTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit ActionMaskTransform(const ActionMask::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "ActionMask"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Text("mask_key", options_.mask_key)
        .Bool("replace", options_.replace);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    RILL_ASSIGN_OR_RETURN(const LeafSpec action,
                          FindSpec(kPlanSteps, "action", step));
    RILL_ASSIGN_OR_RETURN(const LeafSpec mask,
                          FindSpec(kPlanSteps, options_.mask_key, step));
    const bool is_one_hot = action.domain == LeafSpec::Domain::kOneHot;
    if (!is_one_hot && action.domain != LeafSpec::Domain::kCategorical) {
      return Misfit(kPlanSteps, "action", action, "Categorical or OneHot");
    }
    // One flag an option: one-hot rows have those dimensions already, an index
    // has none for its options.
    const Shape want = is_one_hot
                           ? action.shape
                           : action.shape.Concat({action.num_categories});
    if (mask.dtype != DType::kBool || !(mask.shape == want)) {
      return Misfit(
          kPlanSteps, options_.mask_key, mask,
          absl::StrCat("bool", want.ToString(),
                       ", one flag for each option of ", action.ToString()));
    }
    StepPlan plan = {.spec = step, .mask_key = options_.mask_key};
    AddLeaf("action", action,
            options_.replace ? LeafUse::kUpdate : LeafUse::kRead, &plan);
    AddLeaf(options_.mask_key, mask, LeafUse::kRead, &plan);
    return plan;
  }

  absl::Status OnAction(Leaves leaves, TensorDict* /*state*/) const override {
    const BoundLeaf& action = leaves[0];
    const BoundLeaf& mask = leaves[1];
    const int64_t n = mask.shape[mask.shape.rank() - 1];
    const ChoiceRows rows = {.dtype = action.dtype,
                             .is_one_hot = action.shape == mask.shape,
                             .choices = mask.width / n,
                             .options = n};
    // All are looked at before the first is replaced: an error changes none.
    bool has_forbidden = false;
    for (int64_t lane = 0; lane < action.rows; ++lane) {
      for (int64_t choice = 0; choice < rows.choices; ++choice) {
        const int64_t option =
            rows.Read(action.data + lane * action.width, choice);
        const bool* const allowed = AllowedAt(mask, lane, choice, n);
        if (option >= 0 && allowed[option]) continue;
        const int64_t first = FirstAllowed(allowed, n);
        // No option at all (-1) is never replaced: such a row is a mistake of
        // the policy.
        if (!options_.replace || option < 0 || first == n) {
          return Forbidden(lane, choice, option, first, n);
        }
        has_forbidden = true;
      }
    }
    if (!has_forbidden) return absl::OkStatus();
    for (int64_t lane = 0; lane < action.rows; ++lane) {
      std::byte* const row = action.data + lane * action.width;
      for (int64_t choice = 0; choice < rows.choices; ++choice) {
        const bool* const allowed = AllowedAt(mask, lane, choice, n);
        if (allowed[rows.Read(row, choice)]) continue;
        rows.Write(choice, FirstAllowed(allowed, n), row);
      }
    }
    return absl::OkStatus();
  }

  // To refuse an action the host has to look at it before the step.
  bool works_on_device() const override { return options_.replace; }
  bool has_faults() const override { return true; }
  absl::Status FaultOf(int64_t fault) const override {
    return transforms_internal::WrongChoice(kOnAction, fault);
  }
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* /*state*/) const override {
    const Tensor& action = leaves[0];
    const Tensor& mask = leaves[1];
    const int64_t lanes = mask.shape()[0];
    const int64_t n = mask.shape()[mask.rank() - 1];
    const transforms_internal::ReplaceForbiddenKernel kernel = {
        .action = transforms_internal::ChoicesOf(
            action, action.shape() == mask.shape()),
        .mask = mask.data<uint8_t>(),
        .choices = mask.num_elements() / lanes / n,
        .options = n,
        .lanes = lanes,
        .fault = call.fault};
    return LaunchKernel(kernel, GridFor(lanes * kernel.choices), call.stream);
  }

 private:
  static const bool* AllowedAt(const BoundLeaf& mask, int64_t lane,
                               int64_t choice, int64_t n) {
    return reinterpret_cast<const bool*>(mask.data + lane * mask.width +
                                         choice * n);
  }
  // n: none.
  static int64_t FirstAllowed(const bool* allowed, int64_t n) {
    return std::find(allowed, allowed + n, true) - allowed;
  }

  // `first`: the first option that is allowed, n where there is none.
  absl::Status Forbidden(int64_t lane, int64_t choice, int64_t option,
                         int64_t first, int64_t n) const {
    // Nothing is allowed: the mask is at fault, and not the action. That is how
    // a mask looks before the first reset.
    if (option >= 0 && first == n) {
      return FailedPrecondition(
          kOnAction, ": lane ", lane, ", choice ", choice, ": got \"",
          options_.mask_key,
          "\" that allows no action, want one that does; reset the lane "
          "first");
    }
    return InvalidArgument(
        kOnAction, ": action of lane ", lane, ", choice ", choice, ": got ",
        option < 0 ? "no single option" : absl::StrCat(option),
        ", want one of [0, ", n - 1, "] that \"", options_.mask_key,
        "\" allows", first < n ? absl::StrCat(", say ", first) : "");
  }

  const ActionMask::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> ActionMask::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.mask_key))
      << "ActionMask::Create: mask_key";
  return std::make_unique<ActionMaskTransform>(options);
}

}  // namespace rill
