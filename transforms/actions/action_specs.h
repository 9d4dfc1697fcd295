// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ACTIONS_ACTION_SPECS_H_
#define RILL_TRANSFORMS_ACTIONS_ACTION_SPECS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/actions/choice_kernels.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill::transforms_internal {

// Specs that transforms of actions share.

// The plan of a transform that makes the environment's action `inner` of the
// policy's, `outer`: its calls get the policy's, then the environment's.
absl::StatusOr<StepPlan> PlanAction(const TensorDictSpec& step,
                                    const LeafSpec& inner,
                                    const LeafSpec& outer);

// INVALID_ARGUMENT unless the leaf "action" of `step` is `want`, which the
// transform was made with. NOT_FOUND where there is none.
absl::Status CheckAction(absl::string_view caller, const TensorDictSpec& step,
                         const LeafSpec& want);

// The base of those that also map batches: beside an environment they map the
// action, by `map` from the policy's to the environment's, and no other leaf.
// Their plan is that of PlanAction, or nothing.
class ActionTransform : public RowwiseTransform {
 public:
  absl::string_view name() const override = 0;
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override = 0;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnAction(Leaves leaves, TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;
  bool works_on_device() const override { return map_->maps_on_device(); }
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override;
  absl::Status OnDeviceAction(const Call& call, Tensors leaves,
                              TensorDict* state) const override;
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override;

 protected:
  ActionTransform(const Rows& rows, std::shared_ptr<const RowMap> map)
      : RowwiseTransform(rows), map_(std::move(map)) {}

 private:
  const std::shared_ptr<const RowMap> map_;
};

// The bounds of a row's elements. INVALID_ARGUMENT unless the spec is float32
// or float64, bounded, and all bounds are finite.
struct ElementBounds {
  std::vector<double> low;
  std::vector<double> high;
};
absl::StatusOr<ElementBounds> FiniteBounds(absl::string_view caller,
                                           const LeafSpec& spec);
// The same without the checks, of any spec of float32 or float64; infinite
// where there is no bound.
ElementBounds BoundsOf(const LeafSpec& spec);

// How a row holds choices: an index each, or one-hot.
struct ChoiceRows {
  DType dtype = DType::kInt64;
  bool is_one_hot = false;
  int64_t choices = 1;  // Of a row.
  int64_t options = 1;  // Of a choice.

  // -1 where the row has no option in [0, options), or several.
  int64_t Read(const std::byte* row, int64_t choice) const;
  void Write(int64_t choice, int64_t option, std::byte* row) const;
};

// A leaf [lanes, ...] of such rows on a device.
ChoiceLeaf ChoicesOf(const Tensor& leaf, bool is_one_hot);

// INVALID_ARGUMENT of a kernel's fault (choice_kernels.h).
absl::Status WrongChoice(absl::string_view caller, int64_t fault);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ACTIONS_ACTION_SPECS_H_
