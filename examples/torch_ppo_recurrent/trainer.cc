// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_ppo_recurrent/trainer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/torch_ppo_recurrent/pipeline.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/tensor_exchange.h"
#include "rill/libtorch/torch_call.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"
#include "torch/nn/utils/clip_grad.h"
#include "torch/utils.h"

namespace rill::torch_ppo_recurrent {
namespace {

using ppo_recurrent::kRecallCues;

constexpr double kMaxGradientNorm = 0.5;
constexpr double kClip = 0.2;

}  // namespace

Trainer::Trainer(const Options& options) : options_(options) {
  torch::manual_seed(static_cast<uint64_t>(options.config.seed));
  networks_ = std::make_shared<GruNetworks>(
      GruNetworks::Sizes{.observation = kRecallCues + 1,
                         .actions = kRecallCues + 1,
                         .units = options.config.units,
                         .has_memory = options.config.has_memory});
  adam_ = std::make_unique<torch::optim::Adam>(
      networks_->parameters(),
      torch::optim::AdamOptions(options.config.learning_rate).eps(1e-5));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const Options& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(options));
  RILL_ASSIGN_OR_RETURN(trainer->pipeline_,
                        MakePipeline(options.config, trainer->networks_));
  if (options.resume) {
    RILL_RETURN_IF_ERROR(trainer->Resume());
  } else {
    RILL_ASSIGN_OR_RETURN(
        trainer->run_, examples::EvaluatedRun::Create(trainer->RunOptions()));
  }
  return trainer;
}

examples::EvaluatedRun::Options Trainer::RunOptions() const {
  const Config& config = options_.config;
  return {.title = absl::StrCat("torch_ppo_recurrent, seed ", config.seed),
          .run_dir = options_.run_dir,
          .solve_return = kSolveReturn,
          .total_steps = config.total_steps,
          .evaluate_every = config.evaluate_every,
          .columns = {{"loss", "train/loss"}, {"entropy", "train/entropy"}},
          .stop = options_.stop};
}

absl::StatusOr<TrainingParts> Trainer::Parts() {
  TrainingParts parts = {.optimizers = {{"networks", adam_.get()}}};
  RILL_ASSIGN_OR_RETURN(ModuleWeights weights, ModuleWeights::Of(*networks_));
  parts.weights.emplace("networks", std::move(weights));
  return parts;
}

absl::Status Trainer::SaveCheckpoint() {
  RILL_ASSIGN_OR_RETURN(const TensorDict collector,
                        pipeline_.collector->SaveState());
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, Parts());
  RILL_ASSIGN_OR_RETURN(const TensorDict learner, SaveTraining(parts));
  RILL_ASSIGN_OR_RETURN(const TensorDict run, run_->SaveState());
  // The buffer is empty between rounds; its number of batches is saved.
  return RunCheckpoint::Save(
      absl::StrCat(options_.run_dir, "/checkpoint"),
      {.buffers = {{"round", pipeline_.buffer.get()}},
       .states = {
           {"collector", collector}, {"learner", learner}, {"run", run}}});
}

absl::Status Trainer::DoRound() {
  const Config& config = options_.config;
  RILL_ASSIGN_OR_RETURN(TensorDict batch, pipeline_.collector->Next());
  TensorDict no_state;
  RILL_RETURN_IF_ERROR(pipeline_.advantages->Forward(&batch, &no_state));
  RILL_RETURN_IF_ERROR(pipeline_.buffer->Extend(batch).status());
  const double left = 1 - static_cast<double>(pipeline_.collector->frames() -
                                              config.rows_per_round()) /
                              static_cast<double>(config.total_steps);
  for (auto& group : adam_->param_groups()) {
    group.options().set_lr(config.learning_rate * std::max(left, 0.0));
  }
  for (int64_t epoch = 0; epoch < config.epochs; ++epoch) {
    RILL_ASSIGN_OR_RETURN(const int64_t batches,
                          pipeline_.buffer->BatchesLeft());
    for (int64_t i = 0; i < batches; ++i) {
      RILL_ASSIGN_OR_RETURN(const TensorDict sample,
                            pipeline_.buffer->Sample());
      RILL_RETURN_IF_ERROR(LearnFrom(sample));
    }
  }
  // The next round is of other weights.
  return pipeline_.buffer->Clear();
}

absl::Status Trainer::LearnFrom(const TensorDict& sample) {
  const Config& config = options_.config;
  RILL_ASSIGN_OR_RETURN(const TorchTensors rows, ToTorch(sample));
  return CallTorch(
      [&]() -> absl::Status {
        const int64_t length = config.burn_in + config.sequence_length;
        // Steps [sequences, length, ...].
        const auto lines = [&](const char* key) {
          const at::Tensor& leaf = rows[key];
          std::vector<int64_t> sizes = leaf.sizes().vec();
          sizes[0] = length;
          sizes.insert(sizes.begin(), -1);
          return leaf.view(sizes);
        };
        const auto numbers = [&](const char* key) {
          return rows[key].view({-1, length});
        };
        const at::Tensor is_valid = numbers("validity_mask");
        const auto [logits, values] = networks_->Unroll(
            lines("observation"), lines("hidden").select(1, 0),
            numbers("is_init"), is_valid, config.burn_in);
        RILL_ASSIGN_OR_RETURN(
            const Categorical actions,
            Categorical::Create(logits, lines("action_mask")));
        RILL_ASSIGN_OR_RETURN(const at::Tensor log_prob,
                              actions.LogProb(numbers("action")));
        RILL_ASSIGN_OR_RETURN(const at::Tensor entropies, actions.Entropy());

        const at::Tensor learned =
            is_valid.logical_and(numbers("learning_mask"));
        // One step has no deviation to divide its advantage by.
        if (learned.sum().item<int64_t>() < 2) return absl::OkStatus();
        const auto of_learned = [&](const at::Tensor& steps) {
          return steps.masked_select(learned);
        };
        at::Tensor advantage = of_learned(numbers("advantage"));
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
        const at::Tensor ratio =
            (of_learned(log_prob) - of_learned(numbers("log_prob"))).exp();
        const at::Tensor policy_loss =
            -at::min(ratio * advantage,
                     ratio.clamp(1 - kClip, 1 + kClip) * advantage)
                 .mean();
        const at::Tensor value_loss = at::mse_loss(
            of_learned(values), of_learned(numbers("value_target")));
        const at::Tensor entropy = of_learned(entropies).mean();
        const at::Tensor loss = policy_loss + 0.5 * value_loss -
                                config.entropy_coefficient * entropy;
        adam_->zero_grad();
        loss.backward();
        torch::nn::utils::clip_grad_norm_(networks_->parameters(),
                                          kMaxGradientNorm);
        adam_->step();
        loss_ = loss.item<float>();
        entropy_ = entropy.item<float>();
        return absl::OkStatus();
      },
      "Trainer::LearnFrom");
}

absl::StatusOr<examples::EvaluatedRun::Evaluation> Trainer::Evaluate() {
  const Config& config = options_.config;
  RILL_ASSIGN_OR_RETURN(auto env,
                        ppo_recurrent::MakeRecall({.lanes = config.lanes}));
  RILL_ASSIGN_OR_RETURN(
      const EvaluateResult result,
      EvaluatePolicy(
          *env, *pipeline_.policy,
          {.episodes = config.evaluation_episodes,
           .seed = Rng(static_cast<uint64_t>(config.seed)).Bits64(0, 0)}));
  return examples::EvaluatedRun::Evaluation{result.mean_return,
                                            {loss_, entropy_}};
}

absl::Status Trainer::Resume() {
  std::map<std::string, ReplayBuffer::Options> buffers;
  RILL_ASSIGN_OR_RETURN(buffers["round"], BufferOptions(options_.config));
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(absl::StrCat(options_.run_dir, "/checkpoint"),
                          {.buffers = std::move(buffers),
                           .states = {"collector", "learner", "run"}}));
  pipeline_.buffer = std::move(opened.buffers["round"]);
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, Parts());
  RILL_RETURN_IF_ERROR(LoadTraining(opened.states["learner"], parts));
  RILL_RETURN_IF_ERROR(
      pipeline_.collector->LoadState(opened.states["collector"]));
  RILL_ASSIGN_OR_RETURN(
      run_, examples::EvaluatedRun::Resume(RunOptions(), opened.states["run"],
                                           pipeline_.collector->frames()));
  return absl::OkStatus();
}

absl::StatusOr<RunResult> Trainer::Run(ProgressLine& progress) {
  const auto learn = [this]() -> absl::StatusOr<int64_t> {
    RILL_RETURN_IF_ERROR(DoRound());
    return pipeline_.collector->frames();
  };
  return run_->Run({.learn = learn,
                    .evaluate = [this] { return Evaluate(); },
                    .save = [this] { return SaveCheckpoint(); }},
                   progress);
}

}  // namespace rill::torch_ppo_recurrent
