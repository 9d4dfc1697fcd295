// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNIT_TRANSFORM_H_
#define RILL_TRANSFORMS_UNIT_TRANSFORM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/slots/sample_plan.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The arithmetic of a sampler's unit: what the rows that it planned become. The
// sampler tells which rows (n-step: a row, those behind it and the last of
// them), this which leaves of them are read and what is made of those. A replay
// buffer calls it between the gather and the transforms.
//
// Thread-safety: immutable.
class UnitTransform {
 public:
  // Keys of leaves of the stored rows. A leaf that is not named is not read.
  struct Reads {
    std::vector<std::string> rows;  // Of the batch's own rows.
    // Of each list of SamplePlan::context, in its order. As many lists as the
    // unit plans.
    std::vector<std::vector<std::string>> context;
  };

  virtual ~UnitTransform() = default;

  // "NStepReturns": named in errors and checkpoints.
  virtual absl::string_view name() const = 0;

  // From what a stored row holds. INVALID_ARGUMENT or NOT_FOUND, naming the
  // key and what there is, where it cannot work on such rows.
  virtual absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const = 0;

  // What the batch holds afterwards, beside the sampler's own leaves.
  virtual absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const = 0;

  // `batch` [R] holds Reads::rows of the plan's rows (and `index`, ...);
  // context[i] is [plan.context[i].rows.size()] and holds Reads::context[i].
  // All are contiguous and the sample's own, so that `batch` may be changed in
  // place; the batch shape stays. With an error the batch is to be dropped.
  virtual absl::Status Apply(const SamplePlan& plan,
                             absl::Span<const TensorDict> context,
                             TensorDict* batch) const = 0;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNIT_TRANSFORM_H_
