// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_ppo_recurrent/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/policy_critic.h"
#include "rill/estimators/next_state_value.h"
#include "rill/estimators/value_estimators.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/episodes/episode_trackers.h"

namespace rill::torch_ppo_recurrent {
namespace {

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(
    const Config& config, std::shared_ptr<GruNetworks> networks) {
  TorchPolicy::Options options;
  options.model = TorchModel::Of(std::move(networks));
  options.in_keys = {"observation", "hidden"};
  options.actions = TorchPolicy::Actions::kCategorical;
  options.mask_key = "action_mask";
  RILL_RETURN_IF_ERROR(options.outputs.Set(
      "state_value", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_RETURN_IF_ERROR(options.outputs.Set(
      "next/hidden", LeafSpec::Bounded(DType::kFloat32, {config.units},
                                       /*low=*/-1, /*high=*/1)));
  options.seed = static_cast<uint64_t>(config.seed);
  return TorchPolicy::Create(std::move(options));
}

}  // namespace

absl::StatusOr<ReplayBuffer::Options> BufferOptions(const Config& config) {
  const int64_t rows = config.rows_per_round();
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      DenseStorage::Create({.capacity = rows, .lanes = config.lanes}));
  RILL_ASSIGN_OR_RETURN(
      SampleUnit unit,
      MakeSequences({.sequences = {.length = config.sequence_length,
                                   .burn_in = config.burn_in,
                                   .period = config.sequence_length}}));
  RILL_ASSIGN_OR_RETURN(auto sampler,
                        MakeSampler(MakeWithoutReplacementSelector(),
                                    std::move(unit), "SequencesOnce"));
  const int64_t sequences =
      std::max<int64_t>(rows / config.sequence_length / config.minibatches, 1);
  return ReplayBuffer::Options{
      .storage = std::move(storage),
      .sampler = std::move(sampler),
      .batch_size = sequences * (config.burn_in + config.sequence_length),
      .seed = static_cast<uint64_t>(config.seed)};
}

absl::StatusOr<Pipeline> MakePipeline(const Config& config,
                                      std::shared_ptr<GruNetworks> networks) {
  Pipeline parts;
  RILL_ASSIGN_OR_RETURN(parts.policy, MakePolicy(config, std::move(networks)));

  SyncCollector::Options options;
  options.policy = parts.policy.get();
  options.frames_per_batch = config.rows_per_round();
  options.seed = static_cast<uint64_t>(config.seed);
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env,
                        ppo_recurrent::MakeRecall({.lanes = config.lanes}));
  const TensorDictSpec action = options.env->spec().action;
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        InitTracker::Create({}));
  RILL_ASSIGN_OR_RETURN(parts.collector,
                        SyncCollector::Create(std::move(options)));

  // The critic is recurrent: it reads the state behind the step.
  RILL_ASSIGN_OR_RETURN(Critic critic,
                        MakePolicyCritic(parts.policy.get(), action));
  std::vector<std::unique_ptr<BatchTransform>> advantages;
  RILL_ASSIGN_OR_RETURN(
      advantages.emplace_back(),
      NextStateValue::Create(
          {.critic = std::move(critic),
           .state_keys = {"observation", "action_mask", "hidden"}}));
  RILL_ASSIGN_OR_RETURN(
      advantages.emplace_back(),
      GAE::Create({.gamma = config.gamma, .lmbda = config.gae_lambda}));
  RILL_ASSIGN_OR_RETURN(parts.advantages,
                        Compose::Create(std::move(advantages)));
  RILL_ASSIGN_OR_RETURN(ReplayBuffer::Options buffer, BufferOptions(config));
  RILL_ASSIGN_OR_RETURN(parts.buffer, ReplayBuffer::Create(std::move(buffer)));
  return parts;
}

}  // namespace rill::torch_ppo_recurrent
