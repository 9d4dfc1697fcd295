// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/worker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"

namespace rill::async_dqn {
namespace {

using dqn_cartpole::DoubleDqn;
using dqn_cartpole::EpsilonGreedyPolicy;

// Acts by a network of its own, whose target parameters are those that the
// learner published last.
class NewestWeightsPolicy final : public Policy {
 public:
  explicit NewestWeightsPolicy(WeightStore::Reader* weights)
      : weights_(weights),
        network_(kLanes, {}),
        greedy_(&network_, {.epsilon_frames = 10'000, .final_epsilon = 0.04}) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    const WeightStore::Snapshot latest = weights_->Latest();
    // A look at the version is all that most steps cost; weights are copied
    // when there are new ones.
    if (latest.version != version_) {
      RILL_ASSIGN_OR_RETURN(const absl::Span<float> values,
                            latest.weights.Flat<float>("target"));
      std::copy(values.begin(), values.end(),
                network_.target_parameters().begin());
      version_ = latest.version;
    }
    RILL_RETURN_IF_ERROR(greedy_.Act(root, context, step).status());
    return version_;
  }

 private:
  WeightStore::Reader* const weights_;
  DoubleDqn network_;
  EpsilonGreedyPolicy greedy_;
  int64_t version_ = -1;
};

}  // namespace

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  // Before the scaling, so that the sums are returns as Gymnasium counts them.
  RILL_ASSIGN_OR_RETURN(parts.transforms.emplace_back(), RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(parts.transforms.emplace_back(),
                        RewardScaling::Create({.scale = 0.01}));
  parts.policy = std::make_unique<NewestWeightsPolicy>(context.weights);
  return parts;
}

absl::StatusOr<TensorDict> WeightsOf(DoubleDqn& learner) {
  TensorDict weights;
  RILL_ASSIGN_OR_RETURN(
      Tensor target,
      Tensor::From(absl::Span<const float>(learner.target_parameters()),
                   {DoubleDqn::kParameters}));
  RILL_RETURN_IF_ERROR(weights.Set("target", std::move(target)));
  return weights;
}

}  // namespace rill::async_dqn
