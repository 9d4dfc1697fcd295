// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/pipeline.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/transformed_env.h"
#include "rill/estimators/next_state_value.h"
#include "rill/estimators/value_estimators.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/structure/dtype_cast.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/value_clips.h"

namespace rill::ppo {
namespace {

using Transforms = TransformedEnv::Transforms;

// The inputs and outputs of the networks.
struct Sizes {
  int64_t inputs = 0;
  ActionKind kind = {};
};

// Refuses what the networks cannot read or choose.
absl::StatusOr<Sizes> SizesOf(const EnvSpec& spec) {
  const LeafSpec* observation = spec.observation.Find("observation");
  const LeafSpec* action = spec.action.Find("action");
  if (observation == nullptr || observation->shape.rank() != 1 ||
      action == nullptr) {
    return InvalidArgument(
        "MakePipeline: ", spec.name,
        ": want leaves \"observation\" of one dimension and \"action\"");
  }
  if (action->domain == LeafSpec::Domain::kCategorical) {
    return Sizes{observation->shape[0],
                 {.is_discrete = true, .size = action->num_categories}};
  }
  if (action->dtype != DType::kFloat32 || action->shape.rank() != 1 ||
      action->domain != LeafSpec::Domain::kBounded) {
    return InvalidArgument(
        "MakePipeline: ", spec.name,
        ": \"action\": want one number out of n, or bounded float32 numbers");
  }
  return Sizes{observation->shape[0],
               {.is_discrete = false,
                .size = action->shape[0],
                .low = action->low,
                .high = action->high}};
}

template <typename T>
absl::Status Add(absl::StatusOr<std::unique_ptr<T>> made, Transforms* to) {
  RILL_RETURN_IF_ERROR(made.status());
  to->push_back(*std::move(made));
  return absl::OkStatus();
}

// Before the normalisation of observations, if there is one.
absl::Status AddFirst(const EnvSpec& spec, Transforms* to) {
  // MuJoCo's observations; the networks are float32.
  if (spec.observation.Find("observation")->dtype == DType::kFloat64) {
    RILL_RETURN_IF_ERROR(
        Add(DoubleToFloat::Create({.in_keys = {"observation"}}), to));
  }
  return absl::OkStatus();
}

// Behind it.
absl::Status AddClip(Transforms* to) {
  // CleanRL's bounds, in deviations.
  return Add(Clip::Create({.in_keys = {"observation"}, .low = -10, .high = 10}),
             to);
}

// Normalises as the VecNorm of the same place beside the source, of which
// `states` are, and learns nothing.
absl::Status AddFixedNorm(const TensorDict& states, Transforms* to) {
  const TensorDict* const norm =
      states.FindDict(absl::StrCat("transforms/", to->size(), "/state"));
  if (norm == nullptr) {
    return NotFound("MakeEvaluationEnv: transforms/", to->size(),
                    "/state: got none, want a VecNorm's");
  }
  RILL_ASSIGN_OR_RETURN(VecNormMoments moments,
                        ReadVecNorm(*norm, "observation"));
  RILL_ASSIGN_OR_RETURN(absl::Span<const double> loc,
                        moments.loc.Flat<double>());
  RILL_ASSIGN_OR_RETURN(absl::Span<const double> deviation,
                        moments.scale.Flat<double>());
  std::vector<double> scale;
  for (double d : deviation) {
    // As VecNorm divides: at least by eps.
    scale.push_back(std::max(d, VecNorm::Options().eps));
  }
  return Add(ObservationNorm::Create({.loc = {loc.begin(), loc.end()},
                                      .scale = std::move(scale),
                                      .standard_normal = true}),
             to);
}

// The collector's environment and transforms.
absl::StatusOr<WorkerParts> MakeParts(const Task& task, const Config& config) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(
      parts.env,
      task.make_env(config.lanes, static_cast<uint64_t>(config.seed)));
  const EnvSpec& spec = parts.env->spec();
  RILL_RETURN_IF_ERROR(AddFirst(spec, &parts.transforms));
  if (config.normalize_observation) {
    // Every step weighs the same.
    RILL_RETURN_IF_ERROR(
        Add(VecNorm::Create(
                {.shapes = {spec.observation.Find("observation")->shape},
                 .decay = 1}),
            &parts.transforms));
    RILL_RETURN_IF_ERROR(AddClip(&parts.transforms));
  }
  // Sums rewards as they are: scaling comes behind it.
  RILL_RETURN_IF_ERROR(Add(RewardSum::Create({}), &parts.transforms));
  if (config.normalize_reward) {
    RILL_RETURN_IF_ERROR(
        Add(ReturnScaling::Create({.gamma = config.gamma}), &parts.transforms));
    RILL_RETURN_IF_ERROR(
        Add(RewardClipping::Create({.clamp_min = -10, .clamp_max = 10}),
            &parts.transforms));
  }
  return parts;
}

// Asks a policy that is not its own. A worker thread may: the learner waits
// while it collects. The mutex says so to tools too: that batches arrive orders
// memory through pages that are mapped twice, which ThreadSanitizer cannot see.
class OtherPolicy final : public Policy {
 public:
  OtherPolicy(Policy* policy, absl::Mutex* networks)
      : policy_(policy), networks_(networks) {}
  const TensorDictSpec& output_spec() const override {
    return policy_->output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    absl::MutexLock lock(networks_);
    return policy_->Act(root, context, step);
  }

 private:
  Policy* const policy_;
  absl::Mutex* const networks_;
};

// The source of `pipeline`, and its statistics.
template <typename Collector>
absl::Status Take(absl::StatusOr<std::unique_ptr<Collector>> made,
                  Pipeline* pipeline) {
  RILL_RETURN_IF_ERROR(made.status());
  pipeline->transform_states = [collector = made->get()] {
    return collector->TransformStates();
  };
  pipeline->source = *std::move(made);
  return absl::OkStatus();
}

absl::Status MakeSource(const Task& task, const Config& config,
                        Pipeline* pipeline) {
  Policy* const policy = pipeline->policy.get();
  absl::Mutex* const networks = pipeline->networks.get();
  const int64_t frames_per_batch = config.lanes * config.steps_per_round;
  const auto seed = static_cast<uint64_t>(config.seed);
  if (config.in_worker) {
    MultiCollectorOptions options;
    // A thread: the policy is the learner's own, and no weights are copied.
    options.worker = [=](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
      RILL_ASSIGN_OR_RETURN(WorkerParts parts, MakeParts(task, config));
      parts.policy = std::make_unique<OtherPolicy>(policy, networks);
      return parts;
    };
    options.frames_per_batch = frames_per_batch;
    options.seed = seed;
    return Take(MultiSyncCollector::Create(std::move(options)), pipeline);
  }
  RILL_ASSIGN_OR_RETURN(WorkerParts parts, MakeParts(task, config));
  SyncCollector::Options options;
  options.env = std::move(parts.env);
  options.transforms = std::move(parts.transforms);
  options.policy = policy;
  options.frames_per_batch = frames_per_batch;
  options.seed = seed;
  return Take(SyncCollector::Create(std::move(options)), pipeline);
}

absl::StatusOr<std::unique_ptr<BatchTransform>> MakeAdvantages(
    const Config& config, PpoLearner* learner) {
  const Critic critic = [learner](const TensorDict& states,
                                  Tensor* values) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const absl::Span<const float> observation,
                          states.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(const absl::Span<float> value, values->Flat<float>());
    learner->networks().Values(observation, value);
    return absl::OkStatus();
  };
  std::vector<std::unique_ptr<BatchTransform>> advantages;
  RILL_ASSIGN_OR_RETURN(advantages.emplace_back(),
                        NextStateValue::Create({.critic = critic}));
  RILL_ASSIGN_OR_RETURN(
      advantages.emplace_back(),
      GAE::Create({.gamma = config.gamma, .lmbda = config.gae_lambda}));
  return Compose::Create(std::move(advantages));
}

}  // namespace

absl::StatusOr<Pipeline> MakePipeline(const Task& task, const Config& config) {
  // For its spec alone.
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Env> env, task.make_env(1, 0));
  RILL_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(env->spec()));
  Pipeline pipeline;
  const int64_t steps = config.lanes * config.steps_per_round;
  pipeline.learner = std::make_unique<PpoLearner>(PpoLearner::Options{
      .inputs = sizes.inputs,
      .kind = sizes.kind,
      .max_batch = std::max(steps, config.evaluation_episodes),
      .epochs = config.epochs,
      .minibatches = config.minibatches,
      .max_gradient_norm = config.max_gradient_norm,
      .loss = {.clip = config.clip,
               .value_coefficient = config.value_coefficient,
               .entropy_coefficient = config.entropy_coefficient,
               .clip_value_loss = config.clip_value_loss},
      .seed = static_cast<uint64_t>(config.seed)});
  pipeline.policy = std::make_unique<PpoPolicy>(
      pipeline.learner.get(), static_cast<uint64_t>(config.seed));
  RILL_RETURN_IF_ERROR(MakeSource(task, config, &pipeline));
  RILL_ASSIGN_OR_RETURN(pipeline.advantages,
                        MakeAdvantages(config, pipeline.learner.get()));
  return pipeline;
}

absl::StatusOr<std::unique_ptr<Env>> MakeEvaluationEnv(
    const Task& task, const Config& config, const TensorDict& states) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Env> env,
                        task.make_env(config.evaluation_episodes, 0));
  Transforms transforms;
  RILL_RETURN_IF_ERROR(AddFirst(env->spec(), &transforms));
  if (config.normalize_observation) {
    RILL_RETURN_IF_ERROR(AddFixedNorm(states, &transforms));
    RILL_RETURN_IF_ERROR(AddClip(&transforms));
  }
  return TransformedEnv::Create(std::move(env), std::move(transforms));
}

}  // namespace rill::ppo
