// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_
#define RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Changes nothing: a NaN or an infinity in any leaf of floating point is an
// error, after a read and beside an environment (but for the action). TorchRL's
// FiniteTensorDictCheck.
//
// Errors: INVALID_ARGUMENT names the key and the first index. A step's leaf is
//   named by its layout and place, since steps have no keys.
//   FAILED_PRECONDITION where a leaf lies on a device.
// Thread-safety: immutable.
// Cost: a pass over the leaves.
//
// Example (FiniteTensorDictCheckTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto check, FiniteTensorDictCheck::Create());
class FiniteTensorDictCheck final : public BatchTransform,
                                    public StepTransform {
 public:
  static absl::StatusOr<std::unique_ptr<FiniteTensorDictCheck>> Create();

  absl::string_view name() const override { return "FiniteTensorDictCheck"; }
  OptionValues option_values() const override { return {}; }
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_
