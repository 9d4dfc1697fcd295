// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_sac/trainer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/envs/evaluator.h"
#include "rill/examples/program/evaluated_run.h"
#include "rill/examples/torch_sac/worker.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/libtorch/module_weights.h"
#include "rill/libtorch/training_state.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/memmap_storage.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::torch_sac {

Trainer::Trainer(Options options)
    : options_(std::move(options)),
      learner_({.sizes = options_.task.sizes,
                .bounds = options_.task.bounds,
                .seed = static_cast<uint64_t>(options_.config.seed)}) {}

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
    RILL_ASSIGN_OR_RETURN(run_, examples::EvaluatedRun::Create(RunOptions()));
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

examples::EvaluatedRun::Options Trainer::RunOptions() const {
  const Config& config = options_.config;
  return {.title = absl::StrCat("torch_sac, ", options_.task.name, ", seed ",
                                config.seed),
          .run_dir = options_.run_dir,
          .solve_return = options_.task.solve_return,
          .total_steps = config.total_steps,
          .evaluate_every = config.evaluate_every,
          .checkpoint_every = config.checkpoint_every,
          .columns = {{"critic_loss", "train/critic_loss"},
                      {"actor_loss", "train/actor_loss"},
                      {"temperature", "train/temperature"},
                      {"entropy", "train/entropy"}},
          .stop = options_.stop};
}

absl::Status Trainer::SaveCheckpoint() {
  RILL_ASSIGN_OR_RETURN(const TensorDict collector, collector_->SaveState());
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_ASSIGN_OR_RETURN(const TensorDict learner, SaveTraining(parts));
  RILL_ASSIGN_OR_RETURN(TensorDict run, run_->SaveState());
  RILL_ASSIGN_OR_RETURN(Tensor updates,
                        Tensor::From<int64_t>({learner_.updates()}, {1}));
  RILL_RETURN_IF_ERROR(run.Set("updates", std::move(updates)));
  return RunCheckpoint::Save(
      CheckpointPath(),
      {.buffers = {{"replay", buffer_.get()}},
       .states = {
           {"collector", collector}, {"learner", learner}, {"run", run}}});
}

absl::Status Trainer::Resume() {
  std::map<std::string, ReplayBuffer::Options> buffers;
  buffers["replay"] = BufferOptions();
  RILL_ASSIGN_OR_RETURN(
      RunCheckpoint::Opened opened,
      RunCheckpoint::Open(CheckpointPath(),
                          {.buffers = std::move(buffers),
                           .states = {"collector", "learner", "run"}}));
  buffer_ = std::move(opened.buffers["replay"]);
  RILL_ASSIGN_OR_RETURN(const TrainingParts parts, learner_.parts());
  RILL_RETURN_IF_ERROR(LoadTraining(opened.states["learner"], parts));
  RILL_RETURN_IF_ERROR(weights_->Publish(*store_).status());
  RILL_RETURN_IF_ERROR(collector_->LoadState(opened.states["collector"]));
  RILL_ASSIGN_OR_RETURN(const auto updates,
                        opened.states["run"].Flat<int64_t>("updates"));
  if (updates.size() != 1) {
    return DataLoss("Trainer::Resume: updates: got ", updates.size(),
                    ", want 1");
  }
  learner_.set_updates(updates[0]);
  RILL_ASSIGN_OR_RETURN(
      run_, examples::EvaluatedRun::Resume(RunOptions(), opened.states["run"],
                                           collector_->frames()));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Trainer::CollectAndLearn() {
  RILL_RETURN_IF_ERROR(collector_->CollectInto(*buffer_));
  const int64_t wanted = collector_->frames() - options_.config.random_steps;
  if (learner_.updates() >= wanted) return collector_->frames();
  while (learner_.updates() < wanted) {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&batch_));
    RILL_ASSIGN_OR_RETURN(stats_, learner_.Update(batch_));
  }
  RILL_RETURN_IF_ERROR(weights_->Publish(*store_).status());
  return collector_->frames();
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
  return examples::EvaluatedRun::Evaluation{
      result.mean_return,
      {stats_.critic_loss, stats_.actor_loss, stats_.temperature,
       stats_.entropy}};
}

absl::StatusOr<RunResult> Trainer::Run(ProgressLine& progress) {
  return run_->Run({.learn = [this] { return CollectAndLearn(); },
                    .evaluate = [this] { return Evaluate(); },
                    .save = [this] { return SaveCheckpoint(); }},
                   progress);
}

}  // namespace rill::torch_sac
