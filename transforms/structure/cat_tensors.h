// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_CAT_TENSORS_H_
#define RILL_TRANSFORMS_STRUCTURE_CAT_TENSORS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {

// Transforms that make one leaf of several, after reads and beside an
// environment. There keys are those of the root, and what is below next is
// joined as well. Dimensions are those of a row and count from the back. A
// dictionary that holds nothing after del_keys goes too.
//
// Shapes: row shapes and dtypes that fit; any batch shape. The result is
//   bounded if all leaves are, by the least low and the greatest high.
// Errors: INVALID_ARGUMENT names the leaf that does not fit the first.
// Thread-safety: immutable.
// Cost: a copy of the leaves. After a read into one of two tensors that are
//   used again once nobody else holds them. Up to eight leaves then allocate
//   nothing.

// The base: what joins have in common.
class JoinRows : public BatchTransform,
                 public StepTransform,
                 public DeviceSteps {
 public:
  absl::string_view name() const override = 0;
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

 protected:
  struct Keys {
    std::vector<std::string> in_keys;
    std::string out_key;
    int dim = -1;
    bool del_keys = true;
  };

  explicit JoinRows(Keys keys)
      : keys_(std::move(keys)), spare_(2), device_work_(2) {}
  static absl::Status CheckKeys(absl::string_view caller, const Keys& keys);
  const Keys& keys() const { return keys_; }

 private:
  // Which dimension of a row of `rank` dimensions is `dim`; < 0 if none.
  virtual int DimOf(int rank) const = 0;
  // The shape of a joined row of such ones; all have the dimension.
  virtual absl::StatusOr<Shape> JoinedShape(
      absl::string_view caller, absl::Span<const LeafSpec> leaves) const = 0;

  absl::StatusOr<LeafSpec> JoinedSpec(absl::string_view caller,
                                      absl::Span<const LeafSpec> leaves) const;
  absl::Status JoinInSpec(absl::string_view caller, absl::string_view prefix,
                          StepPlan* plan) const;
  // The last of the leaves is the joined one.
  void Join(Leaves leaves, int64_t first, int64_t rows) const;

  absl::StatusOr<Tensor> JoinOnDevice(absl::Span<const Tensor> leaves,
                                      const LeafSpec& joined,
                                      const Shape& shape) const;
  // Adds the copies to `out` [*B, row...].
  absl::Status JoinInto(absl::Span<const Tensor> leaves, int batch_rank,
                        const Tensor& out,
                        transforms_internal::ElementCopies* copies) const;
  // The last of the leaves is the joined one.
  absl::Status JoinSteps(const Call& call, Tensors leaves) const;

  const Keys keys_;
  mutable transforms_internal::SpareTensors spare_;
  mutable transforms_internal::DeviceWork device_work_;
};

// Leaves one behind the other along a dimension of their rows. They are taken
// in the order of their keys unless sort is false. TorchRL's CatTensors.
//
// Example (CatTensorsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto cat, CatTensors::Create({.in_keys = {"position", "velocity"},
//                                     .out_key = "observation"}));
class CatTensors final : public JoinRows {
 public:
  struct Options {
    std::vector<std::string> in_keys = {};  // At least one.
    std::string out_key = "observation_vector";
    int dim = -1;          // < 0.
    bool del_keys = true;  // Only the joined leaf stays.
    bool sort = true;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<CatTensors>> Create(Options options);
  absl::string_view name() const override { return "CatTensors"; }
  OptionValues option_values() const override;

 private:
  CatTensors(Keys keys, bool sort) : JoinRows(std::move(keys)), sort_(sort) {}
  int DimOf(int rank) const override { return rank + keys().dim; }
  absl::StatusOr<Shape> JoinedShape(
      absl::string_view caller,
      absl::Span<const LeafSpec> leaves) const override;

  const bool sort_;
};

// Leaves of equal row shapes along a new dimension, which is dimension `dim` of
// the new rows. TorchRL's Stack.
//
// Example (StackTensorsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto stack, StackTensors::Create({.in_keys = {"left", "right"},
//                                         .out_key = "eyes",
//                                         .dim = -4}));
class StackTensors final : public JoinRows {
 public:
  struct Options {
    std::vector<std::string> in_keys = {};  // At least one.
    std::string out_key = "";               // None of in_keys.
    int dim = -1;                           // < 0.
    bool del_keys = true;                   // Only the joined leaf stays.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<StackTensors>> Create(Options options);
  absl::string_view name() const override { return "StackTensors"; }

 private:
  explicit StackTensors(Keys keys) : JoinRows(std::move(keys)) {}
  int DimOf(int rank) const override { return rank + 1 + keys().dim; }
  absl::StatusOr<Shape> JoinedShape(
      absl::string_view caller,
      absl::Span<const LeafSpec> leaves) const override;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_CAT_TENSORS_H_
