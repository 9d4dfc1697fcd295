// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_SELECT_H_
#define RILL_TRANSFORMS_STRUCTURE_SELECT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/rows/gather_plan.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {

// Keeps some entries of a batch that was read, and drops the others, values
// that are no tensors among them. A key may name a dictionary: all below it.
// TorchRL's SelectTransform, which ignores a selected key that is missing.
//
// Beside an environment a key is that of the root and of the leaf below next.
// The action, next/reward and the flags stay there whatever the options.
//
// Errors: NOT_FOUND where a selected key is missing.
// Thread-safety: immutable.
// Cost: O(entries); a gather does not read what is dropped.
//
// Example (SelectTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto select, Select::Create({.selected_keys = {"observation",
//                                                      "action", "next"}}));
class Select final : public BatchTransform,
                     public StepTransform,
                     public DeviceSteps,
                     public GatherLink {
 public:
  struct Options {
    std::vector<std::string> selected_keys = {};  // At least one.
    bool keep_rewards = true;  // reward, of the root and below next, if any.
    bool keep_dones = true;    // done, terminated, truncated, the same.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<Select>> Create(Options options);

  absl::string_view name() const override { return "Select"; }
  OptionValues option_values() const override;
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  void Extend(GatherPlan* plan) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 private:
  explicit Select(Options options) : options_(std::move(options)) {}
  bool Keeps(absl::string_view key) const;

  const Options options_;
};

// Drops some entries, the others stay; keys that are missing are ignored. A key
// may name a dictionary. One that holds nothing afterwards goes too. TorchRL's
// ExcludeTransform.
//
// Beside an environment a key is that of the root and of the leaf below next;
// it must be there (NOT_FOUND), and no flag, reward or action.
//
// Thread-safety: immutable.
// Cost: O(entries); a gather does not read what is dropped.
//
// Example (ExcludeTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto exclude,
//                         Exclude::Create({.excluded_keys = {"next/info"}}));
class Exclude final : public BatchTransform,
                      public StepTransform,
                      public DeviceSteps,
                      public GatherLink {
 public:
  struct Options {
    std::vector<std::string> excluded_keys = {};  // At least one.
    bool inverse = false;  // Before writes, and not after reads and steps.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<Exclude>> Create(Options options);

  absl::string_view name() const override { return "Exclude"; }
  OptionValues option_values() const override;
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<StepPlan> PlanSteps(const TensorDictSpec& step) const override;
  void Extend(GatherPlan* plan) const override;

  using BatchTransform::InitialState;
  using StepTransform::InitialState;

 private:
  explicit Exclude(Options options) : options_(std::move(options)) {}
  bool Drops(absl::string_view key) const;
  absl::Status DropFrom(TensorDict* batch) const;
  TensorDictSpec Rest(const TensorDictSpec& spec) const;

  const Options options_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_SELECT_H_
