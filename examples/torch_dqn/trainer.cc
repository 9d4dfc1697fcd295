// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/trainer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/transformed_env.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/libtorch/learner/td_errors.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/structure/select.h"

namespace rill::torch_dqn {

Trainer::Trainer(Options options)
    : options_(std::move(options)),
      learner_({.sizes = options_.task.sizes,
                .seed = static_cast<uint64_t>(options_.config.seed)}) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Options options) {
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(options)));
  RILL_RETURN_IF_ERROR(trainer->MakeParts());
  return trainer;
}

std::string Trainer::CheckpointPath() const {
  return absl::StrCat(options_.run_dir, "/checkpoint");
}

absl::StatusOr<std::unique_ptr<Env>> Trainer::MakeStackingEnv(
    int64_t lanes) const {
  RILL_ASSIGN_OR_RETURN(auto env, options_.task.make_env(lanes));
  TransformedEnv::Transforms transforms;
  RILL_ASSIGN_OR_RETURN(
      transforms.emplace_back(),
      CatFrames::Create({.num_frames = options_.task.sizes.frames,
                         .dim = -3,
                         .in_keys = {"pixels"},
                         .out_keys = {"stack"}}));
  return TransformedEnv::Create(std::move(env), std::move(transforms));
}

absl::StatusOr<ReplayBuffer::Options> Trainer::BufferOptions() {
  const Config& config = options_.config;
  ReplayBuffer::Options options;
  // As many slots for each lane.
  RILL_ASSIGN_OR_RETURN(
      options.storage,
      DenseStorage::Create(
          {.capacity = config.capacity / config.lanes * config.lanes,
           .lanes = config.lanes,
           .dedup_next = true}));
  RILL_ASSIGN_OR_RETURN(
      SampleUnit unit,
      MakeTransitions(
          {.n_step = NStepReturns::Options{.num_steps = config.n_step,
                                           .gamma = config.gamma},
           .frames =
               StackFrames::Options{.num_frames = options_.task.sizes.frames,
                                    .keys = {"pixels", "next/pixels"},
                                    .dim = -3}}));
  RILL_ASSIGN_OR_RETURN(
      options.sampler,
      MakePrioritizedSamplerOver(std::move(unit),
                                 {.alpha = config.alpha, .beta = config.beta},
                                 &exponents_));
  RILL_ASSIGN_OR_RETURN(
      options.transforms.emplace_back(),
      Exclude::Create(
          {.excluded_keys = {"stack", "next/stack"}, .inverse = true}));
  options.batch_size = config.batch_size;
  options.seed = static_cast<uint64_t>(config.seed);
  return options;
}

absl::Status Trainer::MakeParts() {
  const Config& config = options_.config;
  RILL_ASSIGN_OR_RETURN(
      greedy_, TorchPolicy::Create({.model = TorchModel::Of(learner_.network()),
                                    .in_keys = {"stack"},
                                    .actions = TorchPolicy::Actions::kGreedy}));
  SyncCollector::Options collector;
  RILL_ASSIGN_OR_RETURN(collector.env, MakeStackingEnv(config.lanes));
  RILL_ASSIGN_OR_RETURN(
      explorer_, MakeEGreedy(greedy_.get(), collector.env->spec(),
                             {.eps_end = config.epsilon,
                              .annealing_num_steps = config.epsilon_steps}));
  collector.policy = explorer_.get();
  collector.frames_per_batch = config.steps_per_batch;
  collector.init_random_frames = config.random_steps;
  collector.seed = static_cast<uint64_t>(config.seed);
  collector.producer = 0;
  RILL_ASSIGN_OR_RETURN(collector_,
                        SyncCollector::Create(std::move(collector)));
  RILL_ASSIGN_OR_RETURN(evaluation_env_,
                        MakeStackingEnv(config.evaluation_episodes));
  if (options_.resume) return Resume();
  RILL_ASSIGN_OR_RETURN(ReplayBuffer::Options buffer, BufferOptions());
  RILL_ASSIGN_OR_RETURN(buffer_, ReplayBuffer::Create(std::move(buffer)));
  RILL_ASSIGN_OR_RETURN(run_, examples::EvaluatedRun::Create(RunOptions()));
  return absl::OkStatus();
}

examples::EvaluatedRun::Options Trainer::RunOptions() const {
  const Config& config = options_.config;
  return {.title = absl::StrCat("torch_dqn, ", options_.task.name, ", seed ",
                                config.seed),
          .run_dir = options_.run_dir,
          .solve_return = options_.task.solve_return,
          .total_steps = config.total_steps,
          .evaluate_every = config.evaluate_every,
          .checkpoint_every = config.checkpoint_every,
          .columns = {{"loss", "train/loss"}, {"value", "train/value"}},
          .stop = options_.stop};
}

absl::Status Trainer::SaveCheckpoint() {
  RILL_ASSIGN_OR_RETURN(const TensorDict collector, collector_->SaveState());
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_ASSIGN_OR_RETURN(const TensorDict learner, SaveTraining(parts));
  RILL_ASSIGN_OR_RETURN(const TensorDict run, run_->SaveState());
  return RunCheckpoint::Save(
      CheckpointPath(),
      {.buffers = {{"replay", buffer_.get()}},
       .states = {
           {"collector", collector}, {"learner", learner}, {"run", run}}});
}

absl::Status Trainer::Resume() {
  std::map<std::string, ReplayBuffer::Options> buffers;
  RILL_ASSIGN_OR_RETURN(buffers["replay"], BufferOptions());
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(CheckpointPath(),
                          {.buffers = std::move(buffers),
                           .states = {"collector", "learner", "run"}}));
  buffer_ = std::move(opened.buffers["replay"]);
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_RETURN_IF_ERROR(LoadTraining(opened.states["learner"], parts));
  RILL_RETURN_IF_ERROR(collector_->LoadState(opened.states["collector"]));
  RILL_ASSIGN_OR_RETURN(
      run_, examples::EvaluatedRun::Resume(RunOptions(), opened.states["run"],
                                           collector_->frames()));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Trainer::CollectAndLearn() {
  const Config& config = options_.config;
  RILL_RETURN_IF_ERROR(collector_->CollectInto(*buffer_));
  const int64_t steps = collector_->frames();
  if (steps < config.random_steps) return steps;
  const double annealed =
      std::min(1.0, static_cast<double>(steps) / config.beta_steps);
  RILL_RETURN_IF_ERROR(
      exponents_->SetBeta(config.beta + (1 - config.beta) * annealed));
  for (int64_t i = 0; i < config.updates_per_batch; ++i) {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&batch_));
    RILL_ASSIGN_OR_RETURN(stats_, learner_.Update(batch_));
    RILL_RETURN_IF_ERROR(UpdatePriorities(*buffer_, batch_, stats_.td_errors));
  }
  return steps;
}

absl::StatusOr<examples::EvaluatedRun::Evaluation> Trainer::Evaluate() {
  const Config& config = options_.config;
  const auto steps = static_cast<uint64_t>(collector_->frames());
  RILL_ASSIGN_OR_RETURN(
      const EvaluateResult result,
      EvaluatePolicy(
          *evaluation_env_, *greedy_,
          {.episodes = config.evaluation_episodes,
           .seed = Rng(static_cast<uint64_t>(config.seed)).Bits64(steps, 0)}));
  double loss = std::numeric_limits<double>::quiet_NaN(), value = loss;
  if (stats_.loss.defined()) {
    loss = stats_.loss.item<double>();
    value = stats_.value.item<double>();
  }
  return examples::EvaluatedRun::Evaluation{result.mean_return, {loss, value}};
}

absl::StatusOr<RunResult> Trainer::Run(ProgressLine& progress) {
  return run_->Run({.learn = [this] { return CollectAndLearn(); },
                    .evaluate = [this] { return Evaluate(); },
                    .save = [this] { return SaveCheckpoint(); }},
                   progress);
}

}  // namespace rill::torch_dqn
