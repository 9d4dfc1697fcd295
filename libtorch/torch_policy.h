// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TORCH_POLICY_H_
#define RILL_LIBTORCH_TORCH_POLICY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/envs/policies/policy.h"
#include "rill/libtorch/torch_model.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Acts by a network of torch: leaves of the root go in without a copy; what
// comes out says which action to take, and fills further leaves of the step.
// TorchRL's users know it as TensorDictModule, ProbabilisticActor and
// QValueActor in one.
//
// Draws are a function of (ActContext::SeedOf(seed), step, number within the
// action): on a CPU a run repeats bit for bit. With ActContext::explore off the
// likeliest action is taken.
//
// Memory of a recurrent network is in leaves: "hidden" among in_keys, and
// "next/hidden" among outputs, as Policy::output_spec says.
//
// Thread-safety: thread-compatible. Two policies may share a model that no one
//   changes; with `load_weights` each has its own.
// Device/Stream: model and leaves are on one device; MovedPolicy is for others.
//   Torch's current stream runs behind ActContext::stream, which runs behind
//   it. kDeterministic actions and further outputs stay on the device, and
//   nobody waits. For other actions the host chooses as on a CPU: it copies the
//   model's first outputs and the mask there, waits for them, and copies
//   actions and log-probabilities back.
// Cost: about 0.4 us a leaf that goes in, and a copy of what comes out.
//
// Example (TorchPolicyTest.Example runs it):
//   torch::nn::Linear net(4, 2);
//   TorchPolicy::Options options;
//   options.model = TorchModel::Of(net.ptr());
//   options.actions = TorchPolicy::Actions::kCategorical;
//   RILL_ASSIGN_OR_RETURN(auto policy,
//                         TorchPolicy::Create(std::move(options)));
//   RILL_ASSIGN_OR_RETURN(auto collector,
//                         SyncCollector::Create({.env = std::move(env),
//                                                .policy = policy.get()}));
class TorchPolicy final : public Policy {
 public:
  // kTanhNormal is TanhNormal of action_distribution.h.
  using Actions = ActionKind;
  struct Options {
    TorchModel model = {};
    // Leaves of the root, in the order of the model's inputs.
    std::vector<std::string> in_keys = {"observation"};
    Actions actions = Actions::kDeterministic;
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
    // Called before each step: makes the newest weights the model's and gives
    // their version, as ModuleWeights::LoadLatest does. Null: the version is 0.
    std::function<absl::StatusOr<int64_t>()> load_weights = nullptr;
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<TorchPolicy>> Create(Options options);

  const TensorDictSpec& output_spec() const override { return outputs_; }

  // INVALID_ARGUMENT, with key, got and want, where a leaf or an output has
  // another dtype, shape or device. So are bounds that CheckBounds refuses, NaN
  // in the parameters of an action, and a lane without a legal action. An
  // exception of the model is a status with its text.
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  TorchPolicy(Options options, TensorDictSpec outputs);

  // The inputs of the model, which lie where it does.
  absl::Status ReadInputs(const TensorDict& root);
  // Runs the model and writes what it gives to the step.
  absl::Status RunModel(const TensorDict& root,
                        const NetworkActions::Draws& draws, TensorDict* step);
  // Makes the action of results_, and writes it to the step.
  absl::Status Choose(const TensorDict& root,
                      const NetworkActions::Draws& draws, TensorDict* step);
  absl::Status ChooseDiscrete(const TensorDict& root,
                              const NetworkActions::Draws& draws);
  absl::Status ChooseTanhNormal(const NetworkActions::Draws& draws);
  // Result i of the model: float32 on the host, contiguous.
  absl::StatusOr<absl::Span<const float>> HostResult(size_t i);

  Options options_;
  const TensorDictSpec outputs_;
  NetworkActions actions_;
  std::vector<at::Tensor> inputs_, results_;  // Of the step at hand.
};

}  // namespace rill

#endif  // RILL_LIBTORCH_TORCH_POLICY_H_
