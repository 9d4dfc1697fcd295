// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_
#define RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Functions in the places of a transform's; empty ones do nothing.
class LambdaTransform final : public StepTransform {
 public:
  struct Options {
    std::string name = "Lambda";
    // From the plan that changes nothing to the one of PlanSteps.
    std::function<absl::StatusOr<StepPlan>(StepPlan)> plan = nullptr;
    std::function<absl::Status(absl::Span<const uint8_t>, Leaves)> on_reset =
        nullptr;
    std::function<absl::Status(Leaves)> on_action = nullptr;
    std::function<absl::Status(Leaves)> on_step = nullptr;
  };
  explicit LambdaTransform(Options options) : options_(std::move(options)) {}

  absl::string_view name() const override { return options_.name; }
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    if (!options_.plan) return plan;
    return options_.plan(std::move(plan));
  }
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    return options_.on_reset ? options_.on_reset(mask, leaves)
                             : absl::OkStatus();
  }
  absl::Status OnAction(Leaves leaves, TensorDict* /*state*/) const override {
    return options_.on_action ? options_.on_action(leaves) : absl::OkStatus();
  }
  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    return options_.on_step ? options_.on_step(leaves) : absl::OkStatus();
  }

 private:
  Options options_;
};

// Adds `seen` int64 [lanes, 1] at the root and below next. There it is the
// number of steps that the transform has seen in its life, which only its state
// knows.
class SeenTransform final : public StepTransform {
 public:
  absl::string_view name() const override { return "Seen"; }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (const char* key : {"seen", "next/seen"}) {
      RILL_RETURN_IF_ERROR(
          plan.spec.Set(key, LeafSpec::Unbounded(DType::kInt64, {1})));
      plan.leaves.push_back({.key = key,
                             .dtype = DType::kInt64,
                             .shape = {1},
                             .use = LeafUse::kWrite});
    }
    return plan;
  }
  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    return StateOf(0);
  }
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get("seen"));
    RILL_ASSIGN_OR_RETURN(const int64_t seen, before.Item<int64_t>());
    for (int64_t& value : leaves[1].As<int64_t>()) value = seen;
    RILL_ASSIGN_OR_RETURN(*state, StateOf(seen + 1));
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<TensorDict> StateOf(int64_t seen) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::From<int64_t>({seen}, Shape({})));
    TensorDict state;
    RILL_RETURN_IF_ERROR(state.Set("seen", std::move(tensor)));
    return state;
  }
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_
