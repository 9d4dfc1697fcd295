// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/trainer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/program/saved_log.h"
#include "rill/examples/torch_sac/worker.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/memmap_storage.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/progress_line.h"
#include "rill/telemetry/run_files.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::torch_sac {
namespace {

// The columns of curve.csv. The last one is wall time.
enum Column {
  kSteps,
  kEvaluation,
  kCriticLoss,  // Of the last update, as are the next three.
  kActorLoss,
  kTemperature,
  kEntropy,
  kSeconds,
  kNumColumns,
};

std::vector<RunFiles::Column> Columns() {
  return {
      {"steps", "progress/steps"},          {"evaluation", "eval/return"},
      {"critic_loss", "train/critic_loss"}, {"actor_loss", "train/actor_loss"},
      {"temperature", "train/temperature"}, {"entropy", "train/entropy"},
      {"seconds", "time/seconds"}};
}

}  // namespace

Trainer::Trainer(Options options)
    : options_(std::move(options)),
      learner_({.sizes = options_.task.sizes,
                .bounds = options_.task.bounds,
                .seed = static_cast<uint64_t>(options_.config.seed)}),
      curve_({.title = absl::StrCat("torch_sac, ", options_.task.name,
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

ReplayBuffer::Options Trainer::BufferOptions() const {
  return {.storage = storage_,
          .sampler = MakeUniformSampler(),
          .batch_size = options_.config.batch_size,
          .seed = static_cast<uint64_t>(options_.config.seed),
          .prefetch = options_.config.prefetch};
}

absl::Status Trainer::MakeParts() {
  const Config& config = options_.config;
  const std::string replay = absl::StrCat(options_.run_dir, "/replay");
  if (options_.resume) {
    // The checkpoint has its rows; here are also those from behind it.
    RILL_RETURN_IF_ERROR(RemoveAll(replay));
  } else {
    RILL_ASSIGN_OR_RETURN(files_, RunFiles::Create(options_.run_dir, Columns(),
                                                   Clock::System().Now()));
  }
  RILL_ASSIGN_OR_RETURN(ModuleWeights weights,
                        ModuleWeights::Of(*learner_.actor()));
  RILL_ASSIGN_OR_RETURN(store_,
                        WeightStore::Create({.weights = weights.dict()}));
  weights_ = std::move(weights);

  MultiCollectorOptions collector;
  collector.workers = config.workers;
  collector.worker_name = options_.worker_name;
  if (options_.worker_name.empty()) {
    collector.worker = [task = options_.task](const WorkerContext& context) {
      return MakeWorker(task, context);
    };
  }
  collector.weights = store_.get();
  collector.frames_per_batch = config.steps_per_batch;
  collector.init_random_frames = config.random_steps;
  collector.seed = static_cast<uint64_t>(config.seed);
  collector.producer = 0;
  RILL_ASSIGN_OR_RETURN(collector_,
                        MultiSyncCollector::Create(std::move(collector)));
  RILL_ASSIGN_OR_RETURN(evaluation_env_,
                        options_.task.make_env(config.evaluation_episodes));
  RILL_ASSIGN_OR_RETURN(greedy_, MakePolicy(options_.task, learner_.actor()));

  RILL_ASSIGN_OR_RETURN(
      storage_,
      MemmapStorage::Create(
          {.directory = replay,
           // As many slots for each lane.
           .capacity = config.capacity / config.workers * config.workers,
           .lanes = config.workers,
           .spec = collector_->spec()}));
  if (options_.resume) return Resume();
  RILL_ASSIGN_OR_RETURN(buffer_, ReplayBuffer::Create(BufferOptions()));
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
      Tensor::From<int64_t>(
          {learner_.updates(), next_evaluation_, result_.solved_at}, {3}));
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
  buffers["replay"] = BufferOptions();
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(CheckpointPath(),
                          {.buffers = std::move(buffers),
                           .states = {"collector", "learner", "run", "log"}}));
  buffer_ = std::move(opened.buffers["replay"]);
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_RETURN_IF_ERROR(LoadTraining(opened.states["learner"], parts));
  RILL_RETURN_IF_ERROR(weights_->Publish(*store_).status());
  RILL_RETURN_IF_ERROR(collector_->LoadState(opened.states["collector"]));
  const TensorDict& run = opened.states["run"];
  RILL_ASSIGN_OR_RETURN(const auto counters, run.Flat<int64_t>("counters"));
  learner_.set_updates(counters[0]);
  next_evaluation_ = counters[1];
  result_.solved_at = counters[2];
  result_.steps = collector_->frames();
  next_checkpoint_ = result_.steps + options_.config.checkpoint_every;
  RILL_ASSIGN_OR_RETURN(
      files_, examples::LoadLog(opened.states["log"], options_.run_dir,
                                Columns(), &curve_));
  return absl::OkStatus();
}

absl::Status Trainer::CollectAndLearn() {
  RILL_RETURN_IF_ERROR(collector_->CollectInto(*buffer_));
  result_.steps = collector_->frames();
  const int64_t wanted = result_.steps - options_.config.random_steps;
  if (learner_.updates() >= wanted) return absl::OkStatus();
  while (learner_.updates() < wanted) {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&batch_));
    RILL_ASSIGN_OR_RETURN(stats_, learner_.Update(batch_));
  }
  return weights_->Publish(*store_).status();
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
  row[kCriticLoss] = stats_.critic_loss;
  row[kActorLoss] = stats_.actor_loss;
  row[kTemperature] = stats_.temperature;
  row[kEntropy] = stats_.entropy;
  row[kSeconds] = absl::ToDoubleSeconds(Clock::Steady().Now() - begin_);
  progress.Say(absl::StrFormat(
      "step %d  return %.1f  value %.1f  temperature %.3f", result_.steps,
      result.mean_return, stats_.value, stats_.temperature));
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
      RILL_RETURN_IF_ERROR(SaveCheckpoint());
      return result_;
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

}  // namespace rill::torch_sac
