// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_
#define RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Changes nothing: a NaN or an infinity in any leaf of floating point or
// complex numbers is an error, after a read and beside an environment (but for
// the action). So too in the tensors of LazyStacks and ragged rows of a batch.
// TorchRL's FiniteTensorDictCheck.
//
// Errors: INVALID_ARGUMENT names the key and the first index, of ragged rows
// that
//   of their values. Where steps that
//   were planned have the same dtypes and shapes under other keys, it names all
//   keys that the leaf may have. FAILED_PRECONDITION where a leaf lies on a
//   device.
// Thread-safety: thread-safe.
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
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override;
  absl::Status OnStep(Leaves leaves, TensorDict* state) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 private:
  absl::Status CheckRows(Leaves leaves, size_t place, int64_t first,
                         int64_t rows) const;

  // The calls see no keys: those of each leaf of the plans, by the layout.
  mutable absl::Mutex mutex_;
  mutable std::map<std::string, std::vector<std::set<std::string>>> keys_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_FINITE_TENSOR_DICT_CHECK_H_
