// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_
#define RILL_COLLECTORS_TESTING_FAKE_TRANSFORMS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/testing/lambda_transform.h"

namespace rill {

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
          AddWrittenLeaf(key, LeafSpec::Unbounded(DType::kInt64, {1}), &plan));
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
