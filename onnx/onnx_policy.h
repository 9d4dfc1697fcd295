// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ONNX_ONNX_POLICY_H_
#define RILL_ONNX_ONNX_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/envs/policies/policy.h"
#include "rill/onnx/onnx_model.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Acts by a .onnx file: leaves of the root go in without a copy; what comes out
// says which action to take, and fills further leaves of the step.
//
// Draws are a function of (ActContext::SeedOf(seed), step, number within the
// action): a run repeats bit for bit. With ActContext::explore off the
// likeliest action is taken. The version of its weights is 0.
//
// Memory of a recurrent network is in leaves: "hidden" among in_keys, and
// "next/hidden" among outputs, as Policy::output_spec says.
//
// Thread-safety: thread-compatible. Several policies may share a model.
// Device/Stream: leaves are in host memory; MovedPolicy is for others.
// Cost: an output that fits its leaf is written there by the model, else
//   copied. onnx/README.md has times.
//
// Example (OnnxPolicyTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(OnnxModel model, OnnxModel::Load(path));
//   RILL_ASSIGN_OR_RETURN(
//       auto policy,
//       OnnxPolicy::Create(
//           {.model = model, .actions = ActionKind::kCategorical}));
class OnnxPolicy final : public Policy {
 public:
  struct Options {
    OnnxModel model = {};
    // Leaves of the root, in the order of the model's inputs.
    std::vector<std::string> in_keys = {"observation"};
    ActionKind actions = ActionKind::kDeterministic;
    // kGreedy and kCategorical: the leaf, bool [lanes, ..., n], of the actions
    // that are legal. Empty: all are.
    std::string mask_key = "";
    ActionBounds bounds = {};  // kTanhNormal.
    std::string action_key = "action";
    // kCategorical and kTanhNormal: the leaf float32 [lanes, 1] of the action's
    // log-probability. Empty: it is not wanted.
    std::string log_prob_key = "log_prob";
    // Further outputs of the model behind those of the action, in order:
    // "state_value", "next/hidden".
    TensorDictSpec outputs = {};
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT names the option: there is no model, or it has other
  // inputs or outputs than the options say.
  static absl::StatusOr<std::unique_ptr<OnnxPolicy>> Create(Options options);

  const TensorDictSpec& output_spec() const override { return outputs_; }

  // INVALID_ARGUMENT, with key, got and want, where a leaf or an output has
  // another dtype, shape or device. NOT_FOUND: the root or the step lacks a
  // leaf. Errors of NetworkActions and of OnnxModel::Run.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  OnnxPolicy(Options options, TensorDictSpec outputs);

  // The leaf that output i of the model is; null where it is a parameter of the
  // action.
  const std::string* KeyOf(size_t i) const;
  // Makes the action of results_, and writes it to the step.
  absl::Status Choose(const TensorDict& root,
                      const NetworkActions::Draws& draws, TensorDict* step);
  absl::Status ChooseDiscrete(const TensorDict& root,
                              const NetworkActions::Draws& draws);
  absl::Status ChooseTanhNormal(const NetworkActions::Draws& draws);
  // Output i of the model: float32 [lanes, ..., n].
  absl::StatusOr<absl::Span<const float>> Parameter(size_t i) const;

  Options options_;
  const TensorDictSpec outputs_;
  NetworkActions actions_;
  std::vector<Tensor> inputs_, results_;  // Of the step at hand.
};

}  // namespace rill

#endif  // RILL_ONNX_ONNX_POLICY_H_
