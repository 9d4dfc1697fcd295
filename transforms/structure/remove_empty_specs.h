// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_REMOVE_EMPTY_SPECS_H_
#define RILL_TRANSFORMS_STRUCTURE_REMOVE_EMPTY_SPECS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/rows/gather_plan.h"

namespace rill {

// Drops nested dictionaries that hold nothing, or only such ones, from a batch
// that was read. Specs name leaves, so they have none and stay; and so do the
// steps of an environment. TorchRL's RemoveEmptySpecs.
//
// Thread-safety: immutable.
// Cost: O(entries).
//
// Example (RemoveEmptySpecsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto remove, RemoveEmptySpecs::Create());
class RemoveEmptySpecs final : public BatchTransform, public GatherLink {
 public:
  static absl::StatusOr<std::unique_ptr<RemoveEmptySpecs>> Create();

  absl::string_view name() const override { return "RemoveEmptySpecs"; }
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  void Extend(GatherPlan* /*plan*/) const override {}
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_REMOVE_EMPTY_SPECS_H_
