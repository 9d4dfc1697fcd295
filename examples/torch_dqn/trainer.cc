// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_dqn/trainer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/transformed_env.h"
#include "rill/examples/program/saved_log.h"
#include "rill/libtorch/learner/td_errors.h"
#include "rill/libtorch/torch_model.h"
#include "rill/libtorch/torch_policy.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/sample_units.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/structure/select.h"

namespace rill::torch_dqn {
namespace {

// The columns of curve.csv. The last one is wall time.
enum Column {
  kSteps,
  kEvaluation,
  kLoss,  // Of the last update, as is the next.
  kValue,
  kSeconds,
  kNumColumns,
};

std::vector<RunFiles::Column> Columns() {
  return {{"steps", "progress/steps"},
          {"evaluation", "eval/return"},
          {"loss", "train/loss"},
          {"value", "train/value"},
          {"seconds", "time/seconds"}};
}

}  // namespace

Trainer::Trainer(Options options)
    : options_(std::move(options)),
      learner_({.sizes = options_.task.sizes,
                .seed = static_cast<uint64_t>(options_.config.seed)}),
      curve_({.title = absl::StrCat("torch_dqn, ", options_.task.name,
                                    ", seed ", options_.config.seed),
              .threshold = options_.task.solve_return}),
      next_evaluation_(options_.config.evaluate_every),
      next_checkpoint_(options_.config.checkpoint_every) {}

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
  RILL_ASSIGN_OR_RETURN(files_, RunFiles::Create(options_.run_dir, Columns(),
                                                 Clock::System().Now()));
  return absl::OkStatus();
}

absl::Status Trainer::SaveCheckpoint() {
  RILL_ASSIGN_OR_RETURN(const TensorDict collector, collector_->SaveState());
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_ASSIGN_OR_RETURN(const TensorDict learner, SaveTraining(parts));
  RILL_ASSIGN_OR_RETURN(const TensorDict log,
                        examples::SaveLog(*files_, curve_));
  TensorDict run;
  RILL_ASSIGN_OR_RETURN(
      const Tensor counters,
      Tensor::From<int64_t>({next_evaluation_, result_.solved_at}, {2}));
  RILL_RETURN_IF_ERROR(run.Set("counters", counters));
  return RunCheckpoint::Save(CheckpointPath(),
                             {.buffers = {{"replay", buffer_.get()}},
                              .states = {{"collector", collector},
                                         {"learner", learner},
                                         {"run", run},
                                         {"log", log}}});
}

absl::Status Trainer::Resume() {
  std::map<std::string, ReplayBuffer::Options> buffers;
  RILL_ASSIGN_OR_RETURN(buffers["replay"], BufferOptions());
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(CheckpointPath(),
                          {.buffers = std::move(buffers),
                           .states = {"collector", "learner", "run", "log"}}));
  buffer_ = std::move(opened.buffers["replay"]);
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_RETURN_IF_ERROR(LoadTraining(opened.states["learner"], parts));
  RILL_RETURN_IF_ERROR(collector_->LoadState(opened.states["collector"]));
  const TensorDict& run = opened.states["run"];
  RILL_ASSIGN_OR_RETURN(const auto counters, run.Flat<int64_t>("counters"));
  next_evaluation_ = counters[0];
  result_.solved_at = counters[1];
  result_.steps = collector_->frames();
  next_checkpoint_ = result_.steps + options_.config.checkpoint_every;
  RILL_ASSIGN_OR_RETURN(
      files_, examples::LoadLog(opened.states["log"], options_.run_dir,
                                Columns(), &curve_));
  return absl::OkStatus();
}

absl::Status Trainer::CollectAndLearn() {
  const Config& config = options_.config;
  RILL_RETURN_IF_ERROR(collector_->CollectInto(*buffer_));
  result_.steps = collector_->frames();
  if (result_.steps < config.random_steps) return absl::OkStatus();
  const double annealed =
      std::min(1.0, static_cast<double>(result_.steps) / config.beta_steps);
  RILL_RETURN_IF_ERROR(
      exponents_->SetBeta(config.beta + (1 - config.beta) * annealed));
  for (int64_t i = 0; i < config.updates_per_batch; ++i) {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&batch_));
    RILL_ASSIGN_OR_RETURN(stats_, learner_.Update(batch_));
    RILL_RETURN_IF_ERROR(UpdatePriorities(*buffer_, batch_, stats_.td_errors));
  }
  return absl::OkStatus();
}

absl::Status Trainer::Evaluate(ProgressLine& progress) {
  const Config& config = options_.config;
  RILL_ASSIGN_OR_RETURN(
      const EvaluateResult result,
      EvaluatePolicy(
          *evaluation_env_, *greedy_,
          {.episodes = config.evaluation_episodes,
           .seed = Rng(static_cast<uint64_t>(config.seed))
                       .Bits64(static_cast<uint64_t>(result_.steps), 0)}));
  result_.evaluation_return = result.mean_return;
  if (result_.solved_at < 0 &&
      result.mean_return >= options_.task.solve_return) {
    result_.solved_at = result_.steps;
  }
  curve_.evaluations.push_back(
      {static_cast<double>(result_.steps), result.mean_return});
  RunRow<Column> row;
  row[kSteps] = static_cast<double>(result_.steps);
  row[kEvaluation] = result.mean_return;
  if (stats_.loss.defined()) {
    row[kLoss] = stats_.loss.item<double>();
    row[kValue] = stats_.value.item<double>();
  }
  row[kSeconds] = absl::ToDoubleSeconds(Clock::Steady().Now() - begin_);
  progress.Say(absl::StrFormat("step %d  return %.2f  value %.3f  loss %.5f",
                               result_.steps, result.mean_return, row[kValue],
                               row[kLoss]));
  RILL_RETURN_IF_ERROR(files_->Write(row.values, Clock::System().Now()));
  return files_->WriteCurve(curve_);
}

absl::StatusOr<RunResult> Trainer::Run(ProgressLine& progress) {
  const Config& config = options_.config;
  begin_ = Clock::Steady().Now();
  const int64_t first = result_.steps;
  while (result_.steps < config.total_steps) {
    if (options_.stop != nullptr && *options_.stop) {
      result_.was_interrupted = true;
      break;
    }
    RILL_RETURN_IF_ERROR(CollectAndLearn());
    if (result_.steps >= next_evaluation_) {
      next_evaluation_ += config.evaluate_every;
      RILL_RETURN_IF_ERROR(Evaluate(progress));
    }
    if (result_.steps >= next_checkpoint_) {
      next_checkpoint_ += config.checkpoint_every;
      RILL_RETURN_IF_ERROR(SaveCheckpoint());
    }
    const absl::Time now = Clock::Steady().Now();
    progress.Update({.steps = result_.steps,
                     .max_steps = config.total_steps,
                     .mean_return = result_.evaluation_return,
                     .steps_per_second =
                         static_cast<double>(result_.steps - first) /
                         std::max(1e-9, absl::ToDoubleSeconds(now - begin_))},
                    now);
  }
  RILL_RETURN_IF_ERROR(SaveCheckpoint());
  return result_;
}

}  // namespace rill::torch_dqn
