// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_TENSOR_DICT_PRIMER_H_
#define RILL_TRANSFORMS_ENV_TENSOR_DICT_PRIMER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Adds leaves to the steps of an environment that a policy wants: a first
// hidden state, a task, a goal. They are filled at a lane's reset and stay as
// they are until its next one. TorchRL's TensorDictPrimer; but a policy cannot
// write them, since a step depends on its action alone.
//
// Shapes: as `primers` says, at the root and below next.
// Errors: a plan is INVALID_ARGUMENT where the steps already have a new key.
// Thread-safety: immutable; that of single_default_value. State: with `random`
//   the draws of the lanes.
// Cost: a copy of each leaf a step; allocates nothing once there were some
//   resets, but for what single_default_value makes.
//
// Example (TensorDictPrimerTest.Example runs it):
//   TensorDictSpec primers;
//   RILL_RETURN_IF_ERROR(
//       primers.Set("hidden", LeafSpec::Unbounded(DType::kFloat32, {64})));
//   RILL_ASSIGN_OR_RETURN(auto primer,
//                         TensorDictPrimer::Create({.primers = primers}));
class TensorDictPrimer {
 public:
  struct Options {
    TensorDictSpec primers = {};  // Of a lane; at least one leaf.
    // Random members of the specs, in place of default values.
    bool random = false;
    uint64_t seed = 0;
    // The value of all elements, and of those of the leaves that have one of
    // their own.
    double default_value = 0;
    std::map<std::string, double> default_values = {};
    // In place of the others: makes all leaves at once, [lanes]. Rows of lanes
    // with mask[lane] == 0 are not looked at.
    std::function<absl::StatusOr<TensorDict>(absl::Span<const uint8_t> mask)>
        single_default_value = nullptr;
  };

  // INVALID_ARGUMENT names the option; also where a default value is no member
  // of its spec.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(Options options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ENV_TENSOR_DICT_PRIMER_H_
