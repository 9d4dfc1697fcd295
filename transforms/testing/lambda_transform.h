// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TESTING_LAMBDA_TRANSFORM_H_
#define RILL_TRANSFORMS_TESTING_LAMBDA_TRANSFORM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/leaves.h"
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
  static std::unique_ptr<StepTransform> Make(Options options) {
    return std::make_unique<LambdaTransform>(std::move(options));
  }
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
  const Options options_;
};

// Has the transform write a leaf of this layout, which its steps have then.
inline absl::Status AddWrittenLeaf(absl::string_view key, const LeafSpec& leaf,
                                   StepPlan* plan) {
  return transforms_internal::AddWritten(key, leaf, plan);
}

}  // namespace rill

#endif  // RILL_TRANSFORMS_TESTING_LAMBDA_TRANSFORM_H_
