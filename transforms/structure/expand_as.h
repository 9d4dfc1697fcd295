// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_EXPAND_AS_H_
#define RILL_TRANSFORMS_STRUCTURE_EXPAND_AS_H_

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
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {

// A leaf repeated until its rows have the shape of another leaf's: a reward of
// all agents for each of them. TorchRL's ExpandAs.
//
// Beside an environment keys are those of the root, and the leaf below next is
// expanded as well. A leaf below next alone, a reward, wants an out_key of its
// own, which is zeros at the root after a reset.
//
// Shapes: the row [a, b] becomes that of the reference, [A, B, ...]; a is A or
//   1, b is B or 1. Any dtype.
// Errors: INVALID_ARGUMENT names both shapes.
// Thread-safety: immutable.
// Cost: a copy of the result. After a read into one of two tensors that are
//   used again once nobody else holds them.
//
// Example (ExpandAsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto expand, ExpandAs::Create({.in_key = "next/done",
//                                      .ref_key = "next/observation",
//                                      .out_key = "next/agents_done"}));
class ExpandAs final : public BatchTransform,
                       public StepTransform,
                       public DeviceSteps {
 public:
  struct Options {
    std::string in_key = "";
    std::string ref_key = "";
    std::string out_key = "";  // Empty: in_key.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<ExpandAs>> Create(Options options);

  absl::string_view name() const override { return "ExpandAs"; }
  OptionValues option_values() const override;
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override;
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 private:
  explicit ExpandAs(Options options)
      : options_(std::move(options)), spare_(2), device_work_(2) {}
  absl::StatusOr<LeafSpec> Expanded(absl::string_view caller,
                                    const LeafSpec& leaf,
                                    const Shape& ref) const;

  // The leaf's rows, repeated to `row`.
  absl::StatusOr<Tensor> ExpandOnDevice(const Tensor& leaf, int batch_rank,
                                        const Shape& row) const;

  absl::Status ExpandSteps(const Call& call, const Tensor& from,
                           const Tensor& to) const;

  const Options options_;
  mutable transforms_internal::SpareTensors spare_;
  mutable transforms_internal::DeviceWork device_work_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_EXPAND_AS_H_
