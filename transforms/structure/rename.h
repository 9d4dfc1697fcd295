// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_RENAME_H_
#define RILL_TRANSFORMS_STRUCTURE_RENAME_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Entries get other keys after a read: in_keys[i] becomes out_keys[i]; before a
// write out_keys_inv[i] becomes in_keys_inv[i]. An entry of any kind, also a
// whole dictionary; what stood at the new key is replaced. A dictionary that
// holds nothing afterwards goes. TorchRL's RenameTransform.
//
// Beside an environment a leaf is renamed at the root and below next. Flags,
// rewards and the action can only be copied there, and there are no inverse
// keys.
//
// Errors: NOT_FOUND where there is no such entry.
// Thread-safety: immutable.
// Cost: O(entries); with create_copy that of the copy. A gather reads a leaf
//   twice where it is copied. A copy of the leaf beside an environment.
//
// Example (RenameTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto rename,
//                         Rename::Create({.in_keys = {"observation"},
//                                         .out_keys = {"state"}}));
class Rename final : public RowwiseTransform {
 public:
  struct Options {
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // None of in_keys.
    std::vector<std::string> in_keys_inv = {};
    std::vector<std::string> out_keys_inv = {};  // Empty: in_keys_inv.
    bool create_copy = false;  // The old keys stay, with bytes of their own.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<Rename>> Create(const Options& options);

  absl::string_view name() const override { return "Rename"; }
  OptionValues option_values() const override;
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  void Extend(GatherPlan* plan) const override;

 private:
  Rename(const Options& options, Rows rows);
  absl::Status RenameOne(absl::string_view from, const std::string& to,
                         bool is_own, TensorDict* batch) const;
  // Moves all, or none.
  absl::Status RenameAll(absl::Span<const std::string> from,
                         absl::Span<const std::string> to, bool are_apart,
                         bool is_own, TensorDict* batch) const;

  const std::vector<std::string> in_keys_inv_;
  const std::vector<std::string> out_keys_inv_;
  const bool create_copy_;
  // No renaming depends on those before it.
  const bool are_apart_;
  const bool are_apart_inv_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_RENAME_H_
