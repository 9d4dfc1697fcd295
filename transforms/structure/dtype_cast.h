// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_DTYPE_CAST_H_
#define RILL_TRANSFORMS_STRUCTURE_DTYPE_CAST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Leaves of one dtype become another one after a read and beside an
// environment, and come back before a write. Values as by Cast (tensor.h).
// TorchRL's DTypeCastTransform.
//
// Without any key it is about all leaves: after a read those of dtype_in,
// before a write those of dtype_out. Beside an environment those of dtype_in;
// an action among them is cast back on its way in. Tensors of LazyStacks and
// ragged rows are no leaves and stay.
//
// Shapes: any. Errors: INVALID_ARGUMENT where a leaf that is named has another
//   dtype.
// Thread-safety: immutable.
// Cost: a pass over the leaves.
//
// Example (DTypeCastTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto cast, DTypeCast::Create({.dtype_in = DType::kInt64,
//                                     .dtype_out = DType::kInt32,
//                                     .in_keys = {"observation"}}));
class DTypeCast final : public RowwiseTransform {
 public:
  struct Options {
    DType dtype_in = DType::kFloat32;
    DType dtype_out = DType::kFloat32;  // Another than dtype_in.
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};     // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};  // From dtype_out to dtype_in.
  };

  // INVALID_ARGUMENT names the option. All leaves of bool are not cast: flags
  // stay bool.
  static absl::StatusOr<std::unique_ptr<DTypeCast>> Create(
      const Options& options);

  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnAction(Leaves leaves, TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override;
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override;
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override;
  void Extend(GatherPlan* plan) const override;

 private:
  friend class DoubleToFloat;

  static absl::StatusOr<std::unique_ptr<DTypeCast>> CreateNamed(
      absl::string_view name, const Options& options);
  DTypeCast(absl::string_view name, const Options& options, Rows rows);

  bool casts_all() const {
    return rows().in_keys.empty() && rows().in_keys_inv.empty();
  }
  absl::Status CastAll(const RowMap& map, DType from, TensorDict* batch) const;

  const DType dtype_in_;
  const DType dtype_out_;
};

// A DTypeCast from float64 to float32. TorchRL's DoubleToFloat.
//
// Example (DoubleToFloatTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto to_float, DoubleToFloat::Create({}));
class DoubleToFloat {
 public:
  struct Options {
    std::vector<std::string> in_keys = {};  // No key at all: all leaves.
    std::vector<std::string> out_keys = {};
    std::vector<std::string> in_keys_inv = {};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<DTypeCast>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_DTYPE_CAST_H_
