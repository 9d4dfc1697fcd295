// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/pipeline.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"

namespace rill::dqn_cartpole {
namespace {

constexpr int64_t kParameters = DoubleDqn::kParameters;
constexpr int64_t kActions = DoubleDqn::kActions;

absl::StatusOr<std::unique_ptr<SyncCollector>> MakeCollector(
    const Config& config, Policy* policy) {
  SyncCollector::Options options;
  RILL_ASSIGN_OR_RETURN(
      options.env, MakeCartPole({.lanes = config.lanes,
                                 .seed = static_cast<uint64_t>(config.seed)}));
  options.policy = policy;
  // The sum comes before the scaling: the curve shows returns as they are.
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<StepTransform> counter,
                        StepCounter::Create({}));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<StepTransform> sum,
                        RewardSum::Create({}));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<StepTransform> scaling,
                        RewardScaling::Create({.scale = config.reward_scale}));
  options.transforms.push_back(std::move(counter));
  options.transforms.push_back(std::move(sum));
  options.transforms.push_back(std::move(scaling));
  options.frames_per_batch = config.frames_per_batch;
  // The collector draws these actions; epsilon counts their frames all the
  // same.
  options.init_random_frames = config.init_random_frames;
  options.seed = config.seed;
  return SyncCollector::Create(std::move(options));
}

absl::StatusOr<ReplayBuffer::Options> MakeReplayOptions(
    const Config& config, const SyncCollector& collector) {
  ReplayBuffer::Options options;
  // With the spec: the layout is known before the first batch.
  RILL_ASSIGN_OR_RETURN(options.storage,
                        DenseStorage::Create({.capacity = config.capacity,
                                              .lanes = config.lanes,
                                              .spec = collector.spec()}));
  options.sampler = MakeUniformSampler();
  options.batch_size = config.batch_size;
  options.seed = config.seed;
  return options;
}

// Everything but the replay buffer.
absl::StatusOr<Pipeline> MakeWithoutReplay(const Config& config) {
  Pipeline pipeline;
  pipeline.learner = MakeLearner(config);
  pipeline.policy = std::make_unique<EpsilonGreedyPolicy>(
      pipeline.learner.get(),
      EpsilonGreedyPolicy::Options{.seed = static_cast<uint64_t>(config.seed),
                                   .epsilon_frames = config.epsilon_frames,
                                   .final_epsilon = config.final_epsilon});
  RILL_ASSIGN_OR_RETURN(pipeline.collector,
                        MakeCollector(config, pipeline.policy.get()));
  // A lane for each episode: all run side by side, in one call of the policy a
  // step.
  RILL_ASSIGN_OR_RETURN(pipeline.probe_env,
                        MakeCartPole({.lanes = config.probe_episodes}));
  RILL_ASSIGN_OR_RETURN(pipeline.evaluation_env,
                        MakeCartPole({.lanes = config.evaluation_episodes}));
  return pipeline;
}

// The learner's arrays by name.
struct NamedArray {
  absl::string_view name;
  absl::Span<float> values;
};
// The one list that saving and loading share.
std::array<NamedArray, 4> Arrays(DoubleDqn& learner) {
  return {{{"online", learner.online_parameters()},
           {"target", learner.target_parameters()},
           {"first_moment", learner.adam().first_moment()},
           {"second_moment", learner.adam().second_moment()}}};
}

}  // namespace

std::unique_ptr<DoubleDqn> MakeLearner(const Config& config) {
  // One network serves updates, acting and evaluations.
  const int64_t max_batch =
      std::max({config.batch_size, config.lanes, config.evaluation_episodes,
                config.probe_episodes});
  auto learner = std::make_unique<DoubleDqn>(
      max_batch, DoubleDqn::Options{
                     .gamma = config.gamma,
                     .target_tau = config.target_tau,
                     .adam = {.max_gradient_norm = config.max_gradient_norm}});
  const Rng rng(config.seed, RngStream::kInit);
  std::vector<double> uniforms(kParameters);
  for (int64_t i = 0; i < kParameters; ++i) {
    uniforms[i] = rng.UniformDouble(/*batch=*/i, /*draw=*/0);
  }
  learner->Initialize(uniforms);
  return learner;
}

absl::StatusOr<Pipeline> MakePipeline(const Config& config,
                                      const std::string& replay_directory) {
  RILL_ASSIGN_OR_RETURN(Pipeline pipeline, MakeWithoutReplay(config));
  RILL_ASSIGN_OR_RETURN(ReplayBuffer::Options options,
                        MakeReplayOptions(config, *pipeline.collector));
  RILL_ASSIGN_OR_RETURN(
      pipeline.replay,
      replay_directory.empty()
          ? ReplayBuffer::Create(std::move(options))
          : ReplayBuffer::Open(replay_directory, std::move(options)));
  return pipeline;
}

absl::StatusOr<TensorDict> SaveLearner(DoubleDqn& learner) {
  TensorDict state;
  for (const NamedArray& array : Arrays(learner)) {
    RILL_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::From(absl::Span<const float>(array.values), {kParameters}));
    RILL_RETURN_IF_ERROR(state.Set(array.name, std::move(tensor)));
  }
  const int64_t steps = learner.adam().step_count();
  RILL_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::From(absl::MakeConstSpan(&steps, 1), {1}));
  RILL_RETURN_IF_ERROR(state.Set("step_count", std::move(tensor)));
  return state;
}

absl::Status LoadLearner(const TensorDict& state, DoubleDqn* learner) {
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> steps,
                        state.Flat<int64_t>("step_count"));
  std::vector<absl::Span<float>> saved;
  for (const NamedArray& array : Arrays(*learner)) {
    RILL_ASSIGN_OR_RETURN(absl::Span<float> values,
                          state.Flat<float>(array.name));
    if (values.size() != array.values.size() || steps.size() != 1) {
      return DataLoss("LoadLearner: \"", array.name, "\" has ", values.size(),
                      " values, want ", array.values.size());
    }
    saved.push_back(values);
  }
  // All have been checked; nothing fails from here on.
  const std::array<NamedArray, 4> arrays = Arrays(*learner);
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::copy(saved[i].begin(), saved[i].end(), arrays[i].values.begin());
  }
  learner->adam().set_step_count(steps[0]);
  return absl::OkStatus();
}

absl::StatusOr<DoubleDqn::UpdateStats> LearnFrom(const TensorDict& batch,
                                                 double learning_rate,
                                                 DoubleDqn* learner,
                                                 std::vector<float>* errors) {
  TransitionBatch view;
  RILL_ASSIGN_OR_RETURN(view.observation, batch.Flat<float>("observation"));
  RILL_ASSIGN_OR_RETURN(view.action, batch.Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(view.reward, batch.Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(view.next_observation,
                        batch.Flat<float>("next/observation"));
  RILL_ASSIGN_OR_RETURN(view.terminated, batch.Flat<bool>("next/terminated"));
  // They index the network's outputs.
  for (int64_t action : view.action) {
    if (action < 0 || action >= kActions) {
      return InvalidArgument("LearnFrom: action is ", action, ", want [0, ",
                             kActions, ")");
    }
  }
  std::vector<float> unasked;
  if (errors == nullptr) errors = &unasked;
  errors->resize(view.action.size());
  return learner->Update(view, learning_rate, absl::MakeSpan(*errors));
}

}  // namespace rill::dqn_cartpole
