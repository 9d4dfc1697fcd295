// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/async_run.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/async_dqn/resources.h"
#include "rill/examples/async_dqn/run_row.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/examples/dqn_cartpole/pipeline.h"
#include "rill/flow/sink.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/live_rows/live_rows.h"
#include "rill/storage/memmap_storage.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/progress_line.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

// The loop of the learner's process takes the batch of a worker, learns as much
// as its frames call for, and publishes the weights. Now and then it evaluates,
// looks at resources and kills a worker. Nothing waits for workers but Collect.
//
// At the end two checks say whether the kills have harmed the replay.
// Trajectories that a kill left open must be cut, and in every slice each step
// must begin where the one before ended.

namespace rill::async_dqn {
namespace {

using dqn_cartpole::DoubleDqn;

constexpr int64_t kBatchSize = 128;
constexpr int64_t kStepsABatch = 16;
// Frames before the first update.
constexpr int64_t kWarmUpFrames = 1024;
constexpr int64_t kProbeEvery = 4096;
constexpr int64_t kEvaluationEpisodes = 100;
constexpr int64_t kWindow = 100;  // Episodes of the running mean.
constexpr int64_t kSliceLength = 8;

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options), rng_(options.seed, RngStream::kUser) {}

  absl::StatusOr<RunReport> operator()() {
    RILL_RETURN_IF_ERROR(MakeParts());
    begin_ = Clock::Steady().Now();
    next_kill_ = begin_ + options_.kill_every;
    next_watch_ = begin_ + options_.watch_every;
    while (true) {
      RILL_ASSIGN_OR_RETURN(const bool goes_on, GoesOn());
      if (!goes_on) break;
      RILL_RETURN_IF_ERROR(Collect());
      RILL_RETURN_IF_ERROR(Learn());
      RILL_RETURN_IF_ERROR(EvaluateIfDue());
      RILL_RETURN_IF_ERROR(WatchIfDue());
      ShowProgress();
      KillIfDue();
    }
    RILL_RETURN_IF_ERROR(WriteCurve());
    RILL_RETURN_IF_ERROR(CountCuts());
    RILL_RETURN_IF_ERROR(CheckSlices());
    if (options_.recorder != nullptr) {
      RILL_RETURN_IF_ERROR(options_.recorder->End());
    }
    return report_;
  }

 private:
  // Another clock ends another run elsewhere, so that is a choice.
  absl::StatusOr<bool> GoesOn() const {
    const bool goes_on =
        (!report_.is_solved && report_.frames < options_.max_frames) ||
        Elapsed() < options_.at_least;
    if (options_.recorder == nullptr) return goes_on;
    RILL_ASSIGN_OR_RETURN(const int64_t chosen,
                          options_.recorder->Choose("goes on", goes_on));
    return chosen != 0;
  }

  absl::Status MakeParts() {
    if (!options_.run_dir.empty()) {
      RILL_ASSIGN_OR_RETURN(files_,
                            RunFiles::Create(options_.run_dir, RunColumns(),
                                             Clock::System().Now()));
    }
    curve_ = {.title = absl::StrCat("async_dqn, seed ", options_.seed),
              .window = kWindow,
              .threshold = options_.solve_return};
    // The first row's frames a second are since the beginning.
    last_row_[kFrames] = last_row_[kSeconds] = 0;
    learner_ =
        dqn_cartpole::MakeLearner({.seed = static_cast<int64_t>(options_.seed),
                                   .batch_size = kBatchSize,
                                   .evaluation_episodes = kEvaluationEpisodes});
    greedy_ = std::make_unique<dqn_cartpole::EpsilonGreedyPolicy>(
        learner_.get(), dqn_cartpole::EpsilonGreedyPolicy::Options{});
    RILL_ASSIGN_OR_RETURN(evaluation_env_,
                          MakeCartPole({.lanes = kEvaluationEpisodes}));
    RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(*learner_));
    RILL_ASSIGN_OR_RETURN(
        weights_, WeightStore::Create(
                      {.weights = weights, .recorder = options_.recorder}));

    MultiCollectorOptions collector;
    collector.workers = options_.workers;
    collector.worker_name = "async_dqn";
    collector.weights = weights_.get();
    collector.frames_per_batch = options_.workers * kLanes * kStepsABatch;
    collector.seed = options_.seed;
    // More than kills of a day: a run ends by its frames or its time.
    collector.max_restarts = 100'000;
    collector.batch_timeout = absl::Seconds(30);
    collector.recorder = options_.recorder;
    RILL_ASSIGN_OR_RETURN(collector_,
                          MultiAsyncCollector::Create(std::move(collector)));

    const int64_t lanes = options_.workers * kLanes;
    RILL_ASSIGN_OR_RETURN(
        storage_, MemmapStorage::Create({.directory = options_.replay_directory,
                                         // A storage wants as many slots for
                                         // each lane.
                                         .capacity = 50'000 / lanes * lanes,
                                         .lanes = lanes,
                                         .spec = collector_->spec()}));
    ReplayBuffer::Options replay = {.storage = storage_,
                                    .batch_size = kBatchSize,
                                    .seed = options_.seed,
                                    .recorder = options_.recorder};
    RILL_ASSIGN_OR_RETURN(replay.sampler, MakePrioritizedSampler());
    RILL_ASSIGN_OR_RETURN(buffer_, ReplayBuffer::Create(std::move(replay)));
    return absl::OkStatus();
  }

  absl::Status Collect() {
    FunctionSink counted(
        [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
          // With its info, which names the producer: trajectories of workers
          // stay apart.
          RILL_RETURN_IF_ERROR(buffer_->Write(batch, info));
          return CountEpisodes(batch);
        },
        [&](int64_t producer, LaneRange lanes) {
          // Where a worker was killed.
          return buffer_->Cut(producer, lanes);
        });
    RILL_RETURN_IF_ERROR(collector_->CollectInto(counted));
    report_.frames = collector_->frames();
    report_.restarts = collector_->restarts();
    report_.deaths = collector_->deaths();
    return absl::OkStatus();
  }

  absl::Status CountEpisodes(const TensorDict& batch) {
    RILL_ASSIGN_OR_RETURN(const auto done, batch.Flat<bool>("next/done"));
    RILL_ASSIGN_OR_RETURN(const auto sum,
                          batch.Flat<float>("next/episode_reward"));
    for (size_t i = 0; i < done.size(); ++i) {
      if (!done[i]) continue;
      ++episodes_;
      returns_.push_back(sum[i]);
      if (returns_.size() > kWindow) returns_.pop_front();
      // The curve ends where the run is solved, however long that goes on.
      if (report_.is_solved) continue;
      curve_.episodes.push_back({static_cast<double>(report_.frames), sum[i]});
    }
    return absl::OkStatus();
  }

  // Updates that the frames so far call for; then the workers get the weights.
  absl::Status Learn() {
    if (report_.frames < kWarmUpFrames) return absl::OkStatus();
    // By frames and not by batches: how often a call returns depends on time.
    const int64_t wanted =
        (report_.frames - kWarmUpFrames) / options_.frames_per_update;
    for (; report_.updates < wanted; ++report_.updates) {
      RILL_RETURN_IF_ERROR(Update());
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(*learner_));
    return weights_->Publish(weights).status();
  }

  absl::Status Update() {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&sample_));
    // The importance weights of the samples are not used: the task is solved
    // without that correction.
    std::vector<float> errors;
    RILL_RETURN_IF_ERROR(dqn_cartpole::LearnFrom(sample_,
                                                 /*learning_rate=*/1e-3,
                                                 learner_.get(), &errors)
                             .status());
    for (float& error : errors) error = std::abs(error);
    return buffer_->UpdatePriorities(sample_, errors);
  }

  absl::Status EvaluateIfDue() {
    if (report_.frames < next_evaluation_) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(
        const EvaluateResult result,
        EvaluatePolicy(*evaluation_env_, *greedy_,
                       {.episodes = kEvaluationEpisodes,
                        .seed = rng_.Bits64(report_.frames, /*draw=*/0)}));
    if (!report_.is_solved) {
      report_.evaluation_return = result.mean_return;
      curve_.evaluations.push_back(
          {static_cast<double>(report_.frames), result.mean_return});
      if (result.mean_return >= options_.solve_return) {
        report_.is_solved = true;
        report_.solved_at = report_.frames;
      }
    }
    next_evaluation_ =
        // A solved run goes on for its time only, so it is evaluated less
        // often.
        report_.frames + (report_.is_solved ? 16 * kProbeEvery : kProbeEvery);
    Say(absl::StrFormat("frames %d  updates %d  weights %d  return %.1f%s",
                        report_.frames, report_.updates, weights_->version(),
                        result.mean_return,
                        report_.is_solved ? "  solved" : ""));
    return WriteRow(result.mean_return, ReadResources());
  }

  absl::Status WatchIfDue() {
    if (Clock::Steady().Now() < next_watch_) return absl::OkStatus();
    // From the time that was due, not from now: entries keep their distance.
    next_watch_ += options_.watch_every;
    report_.resources.push_back(ReadResources());
    Say(absl::StrFormat(
        "%s  kills %d  %s",
        absl::FormatDuration(absl::Floor(Elapsed(), absl::Seconds(1))),
        report_.kills, FormatResources(report_.resources.back())));
    // NaN is an empty cell: no evaluation belongs to this row.
    return WriteRow(std::numeric_limits<double>::quiet_NaN(),
                    report_.resources.back());
  }

  absl::Status WriteRow(double evaluation, const Resources& resources) {
    if (files_ == nullptr) return absl::OkStatus();
    RunRow row;
    row[kFrames] = static_cast<double>(report_.frames);
    row[kEpisodes] = static_cast<double>(episodes_);
    row[kMeanReturn] = MeanReturn();
    row[kEvaluation] = evaluation;
    row[kUpdates] = static_cast<double>(report_.updates);
    row[kWeights] = static_cast<double>(weights_->version());
    row[kKills] = static_cast<double>(report_.kills);
    row[kRestarts] = static_cast<double>(report_.restarts);
    row[kResidentMb] = resources.resident_mb;
    row[kChildrenMb] = resources.children_mb;
    row[kDescriptors] = static_cast<double>(resources.descriptors);
    row[kMappings] = static_cast<double>(resources.mappings);
    row[kProcesses] = static_cast<double>(resources.processes);
    row[kSeconds] = absl::ToDoubleSeconds(Elapsed());
    row[kFramesPerSecond] = (row[kFrames] - last_row_[kFrames]) /
                            std::max(row[kSeconds] - last_row_[kSeconds], 1e-9);
    last_row_ = row;
    return files_->Write(row.values, Clock::System().Now());
  }

  absl::Status WriteCurve() const {
    return files_ == nullptr ? absl::OkStatus() : files_->WriteCurve(curve_);
  }

  void ShowProgress() const {
    if (options_.progress == nullptr) return;
    const double seconds = absl::ToDoubleSeconds(Elapsed());
    const double rate = report_.frames / std::max(seconds, 1e-9);
    // A solved run ends by time.
    const double max_frames = report_.is_solved
                                  ? rate * absl::ToDoubleSeconds(std::max(
                                               options_.at_least, Elapsed()))
                                  : static_cast<double>(options_.max_frames);
    options_.progress->Update(
        {.steps = report_.frames,
         .max_steps = static_cast<int64_t>(max_frames),
         .episodes = episodes_,
         .mean_return = MeanReturn(),
         .steps_per_second = rate,
         .note = absl::StrFormat("%d kills, %d restarts", report_.kills,
                                 report_.restarts)},
        Clock::Steady().Now());
  }

  void Say(const std::string& line) const {
    if (options_.progress != nullptr) options_.progress->Say(line);
  }

  absl::Duration Elapsed() const { return Clock::Steady().Now() - begin_; }

  double MeanReturn() const {
    if (returns_.empty()) return std::numeric_limits<double>::quiet_NaN();
    return std::accumulate(returns_.begin(), returns_.end(), 0.0) /
           static_cast<double>(returns_.size());
  }

  void KillIfDue() {
    if (Clock::Steady().Now() < next_kill_) return;
    next_kill_ += options_.kill_every;
    const std::vector<pid_t> workers = ChildProcesses();
    // All are being replaced; the next turn kills again.
    if (workers.empty()) return;
    kill(workers[rng_.UniformInt(report_.kills, /*draw=*/1,
                                 static_cast<int64_t>(workers.size()))],
         SIGKILL);
    ++report_.kills;
  }

  // Rows that a cut has truncated: CartPole truncates after 500 steps only.
  absl::Status CountCuts() {
    RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                          buffer_->ReadAll(LiveRowsShape::kFlat));
    RILL_ASSIGN_OR_RETURN(const auto truncated,
                          rows.Flat<bool>("next/truncated"));
    RILL_ASSIGN_OR_RETURN(const auto sum,
                          rows.Flat<float>("next/episode_reward"));
    for (size_t i = 0; i < truncated.size(); ++i) {
      report_.cuts += truncated[i] && sum[i] < 500 ? 1 : 0;
    }
    return absl::OkStatus();
  }

  absl::Status CheckSlices() {
    ReplayBuffer::Options options = {.storage = storage_,
                                     .batch_size = 512 * kSliceLength,
                                     .seed = options_.seed};
    RILL_ASSIGN_OR_RETURN(options.sampler,
                          MakeSliceSampler({.length = kSliceLength}));
    RILL_ASSIGN_OR_RETURN(const auto slices,
                          ReplayBuffer::Create(std::move(options)));
    for (int i = 0; i < 8; ++i) {
      RILL_ASSIGN_OR_RETURN(const TensorDict batch, slices->Sample());
      RILL_ASSIGN_OR_RETURN(const auto ids,
                            batch.Flat<int64_t>("collector/traj_ids"));
      RILL_ASSIGN_OR_RETURN(const auto root, batch.Flat<float>("observation"));
      RILL_ASSIGN_OR_RETURN(const auto next,
                            batch.Flat<float>("next/observation"));
      // Two rows follow one another where the first one's next observation is
      // the second one's observation, and both are of one trajectory.
      const size_t width = root.size() / ids.size();
      for (size_t first = 0; first < ids.size(); first += kSliceLength) {
        bool is_broken = false;
        for (size_t row = first; row + 1 < first + kSliceLength; ++row) {
          is_broken = is_broken || ids[row] != ids[row + 1] ||
                      !std::equal(next.begin() + row * width,
                                  next.begin() + (row + 1) * width,
                                  root.begin() + (row + 1) * width);
        }
        ++report_.slices;
        report_.broken_slices += is_broken ? 1 : 0;
      }
    }
    return absl::OkStatus();
  }

  const RunOptions& options_;
  const Rng rng_;
  RunReport report_;
  absl::Time begin_, next_kill_, next_watch_;
  int64_t next_evaluation_ = kProbeEvery;  // Frames.
  int64_t episodes_ = 0;
  std::deque<double> returns_;  // The last kWindow.
  LearningCurve curve_;
  RunRow last_row_;
  std::unique_ptr<RunFiles> files_;  // Null: none.
  std::unique_ptr<DoubleDqn> learner_;
  std::unique_ptr<Policy> greedy_;
  std::unique_ptr<Env> evaluation_env_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<MultiAsyncCollector> collector_;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<ReplayBuffer> buffer_;
  TensorDict sample_;
};

}  // namespace

absl::StatusOr<RunReport> RunAsyncDqn(const RunOptions& options) {
  return Run(options)();
}

}  // namespace rill::async_dqn
