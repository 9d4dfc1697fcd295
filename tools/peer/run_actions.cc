// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/peer/run_actions.h"

#include <utility>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/action_discretizer.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/actions/discrete_action_projection.h"

namespace rill {
namespace {

using Made = absl::StatusOr<std::unique_ptr<StepTransform>>;
using Sampling = ActionDiscretizer::Sampling;

// Two dimensions of different width, so that a mistake in their order shows.
LeafSpec Bounds() {
  return *LeafSpec::Bounded(*Tensor::From<float>({-2, 0.5f}, {2}),
                            *Tensor::From<float>({3, 0.75f}, {2}));
}

// A function without captures, one for each rule: the cases hold pointers.
template <Sampling kSampling>
Made Discretize(const LeafSpec& inner) {
  return ActionDiscretizer::Create(
      {.spec = inner, .num_intervals = {7}, .sampling = kSampling});
}

const std::vector<ActionCase>& Cases() {
  static const auto* const cases = new std::vector<ActionCase>{
      {"ActionDiscretizer", Bounds(), Discretize<Sampling::kMedian>},
      {"ActionDiscretizer/low", Bounds(), Discretize<Sampling::kLow>},
      {"ActionDiscretizer/high", Bounds(), Discretize<Sampling::kHigh>},
      {"ActionDiscretizer/one_hot", Bounds(),
       [](const LeafSpec& inner) -> Made {
         return ActionDiscretizer::Create(
             {.spec = inner, .num_intervals = {7}, .categorical = false});
       }},
      {"DiscreteActionProjection", LeafSpec::OneHot(4, DType::kInt64),
       [](const LeafSpec&) -> Made {
         return DiscreteActionProjection::Create(
             {.num_actions_effective = 4, .max_actions = 6});
       }},
      {"ActionMask", LeafSpec::Categorical(5),
       [](const LeafSpec&) -> Made {
         return ActionMask::Create({.replace = true});
       }},
  };
  return *cases;
}

}  // namespace

const ActionCase* FindActionCase(absl::string_view name) {
  for (const ActionCase& found : Cases()) {
    if (found.name == name) return &found;
  }
  return nullptr;
}

absl::Status RunActions(const ActionCase& actions, TensorDict* batch) {
  RILL_ASSIGN_OR_RETURN(const auto transform, actions.make(actions.inner));
  TensorDictSpec step = TensorDictSpec::Of(*batch);
  RILL_RETURN_IF_ERROR(step.Set("action", actions.inner));
  RILL_ASSIGN_OR_RETURN(StepPlan plan, transform->PlanSteps(step));
  // The environment's action has the key of the policy's, or is the policy's,
  // changed in place.
  for (BoundRows::Leaf& leaf : plan.leaves) {
    if (leaf.use == LeafUse::kRead || leaf.key != "action") continue;
    if (leaf.use == LeafUse::kUpdate) {
      RILL_ASSIGN_OR_RETURN(Tensor copy, batch->Find("action")->Clone());
      RILL_RETURN_IF_ERROR(batch->Set("inner", std::move(copy)));
    }
    leaf.key = "inner";
  }
  RILL_ASSIGN_OR_RETURN(BoundRows rows,
                        BoundRows::Create("RunActions", plan.leaves));
  RILL_RETURN_IF_ERROR(rows.Bind(batch));
  RILL_ASSIGN_OR_RETURN(TensorDict state,
                        transform->InitialState(batch->batch_shape()[0]));
  return transform->OnAction(rows.leaves(), &state);
}

}  // namespace rill
