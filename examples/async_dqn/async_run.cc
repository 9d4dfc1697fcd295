// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/async_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/async_dqn/worker.h"
#include "rill/examples/dqn_cartpole/epsilon_greedy_policy.h"
#include "rill/examples/dqn_cartpole/learner/double_dqn.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/live/live_rows.h"
#include "rill/storage/memmap_storage.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::async_dqn {
namespace {

using dqn_cartpole::DoubleDqn;

constexpr int64_t kBatchSize = 128;
constexpr int64_t kStepsABatch = 16;
constexpr int64_t kFramesAnUpdate = 4;
constexpr int64_t kWarmUpFrames = 1024;
constexpr int64_t kProbeEvery = 4096;
constexpr int64_t kEpisodes = 100;
constexpr int64_t kSliceLength = 8;

std::unique_ptr<DoubleDqn> MakeLearner(uint64_t seed) {
  auto learner = std::make_unique<DoubleDqn>(
      kBatchSize, DoubleDqn::Options{.adam = {.max_gradient_norm = 10}});
  const Rng rng(seed, RngStream::kInit);
  std::vector<double> uniforms(DoubleDqn::Network::kParameters);
  for (size_t i = 0; i < uniforms.size(); ++i) {
    uniforms[i] = rng.UniformDouble(i, /*draw=*/0);
  }
  learner->Initialize(uniforms);
  return learner;
}

// Processes whose parent this one is: the workers.
std::vector<pid_t> Workers() {
  std::vector<pid_t> workers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line == absl::StrCat("PPid:\t", getpid())) workers.push_back(pid);
    }
  }
  return workers;
}

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options), rng_(options.seed, RngStream::kUser) {}

  absl::StatusOr<RunReport> operator()() {
    RILL_RETURN_IF_ERROR(MakeParts());
    const absl::Time begin = Clock::Steady().Now();
    next_kill_ = begin + options_.kill_every;
    while (report_.frames < options_.max_frames &&
           (!report_.is_solved ||
            Clock::Steady().Now() - begin < options_.at_least)) {
      RILL_RETURN_IF_ERROR(collector_->CollectInto(*buffer_));
      const int64_t before = report_.frames;
      report_.frames = collector_->frames();
      RILL_RETURN_IF_ERROR(Learn());
      const int64_t every = report_.is_solved ? 16 * kProbeEvery : kProbeEvery;
      if (report_.frames / every > before / every) {
        RILL_RETURN_IF_ERROR(Probe());
      }
      KillIfDue();
    }
    report_.restarts = collector_->restarts();
    RILL_RETURN_IF_ERROR(CountCuts());
    RILL_RETURN_IF_ERROR(CheckSlices());
    return report_;
  }

 private:
  absl::Status MakeParts() {
    learner_ = MakeLearner(options_.seed);
    greedy_ = std::make_unique<dqn_cartpole::EpsilonGreedyPolicy>(
        learner_.get(), dqn_cartpole::EpsilonGreedyPolicy::Options{});
    RILL_ASSIGN_OR_RETURN(evaluation_env_, MakeCartPole({.lanes = kEpisodes}));
    RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(*learner_));
    RILL_ASSIGN_OR_RETURN(weights_, WeightStore::Create({.weights = weights}));

    MultiCollectorOptions collector;
    collector.workers = options_.workers;
    collector.worker_name = "async_dqn";
    collector.weights = weights_.get();
    collector.frames_per_batch = options_.workers * kLanes * kStepsABatch;
    collector.seed = options_.seed;
    collector.max_restarts = 100'000;
    collector.batch_timeout = absl::Seconds(30);
    RILL_ASSIGN_OR_RETURN(collector_,
                          MultiAsyncCollector::Create(std::move(collector)));

    const int64_t lanes = options_.workers * kLanes;
    RILL_ASSIGN_OR_RETURN(
        storage_, MemmapStorage::Create({.directory = options_.replay_directory,
                                         .capacity = 50'000 / lanes * lanes,
                                         .lanes = lanes,
                                         .spec = collector_->spec()}));
    ReplayBuffer::Options replay = {
        .storage = storage_, .batch_size = kBatchSize, .seed = options_.seed};
    RILL_ASSIGN_OR_RETURN(replay.sampler, MakePrioritizedSampler());
    RILL_ASSIGN_OR_RETURN(buffer_, ReplayBuffer::Create(std::move(replay)));
    return absl::OkStatus();
  }

  // Updates that the frames so far call for; then the workers get the weights.
  absl::Status Learn() {
    if (report_.frames < kWarmUpFrames) return absl::OkStatus();
    const int64_t wanted = (report_.frames - kWarmUpFrames) / kFramesAnUpdate;
    for (; report_.updates < wanted; ++report_.updates) {
      RILL_RETURN_IF_ERROR(Update());
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict weights, WeightsOf(*learner_));
    return weights_->Publish(weights).status();
  }

  absl::Status Update() {
    RILL_RETURN_IF_ERROR(buffer_->SampleInto(&sample_));
    dqn_cartpole::TransitionBatch view;
    RILL_ASSIGN_OR_RETURN(view.observation, sample_.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(view.action, sample_.Flat<int64_t>("action"));
    RILL_ASSIGN_OR_RETURN(view.reward, sample_.Flat<float>("next/reward"));
    RILL_ASSIGN_OR_RETURN(view.next_observation,
                          sample_.Flat<float>("next/observation"));
    RILL_ASSIGN_OR_RETURN(view.terminated,
                          sample_.Flat<bool>("next/terminated"));
    std::vector<float> errors(view.action.size());
    learner_->Update(view, /*learning_rate=*/1e-3, absl::MakeSpan(errors));
    for (float& error : errors) error = std::abs(error);
    return buffer_->UpdatePriorities(sample_, errors);
  }

  absl::Status Probe() {
    RILL_ASSIGN_OR_RETURN(
        const EvaluateResult result,
        EvaluatePolicy(*evaluation_env_, *greedy_,
                       {.episodes = kEpisodes,
                        .seed = rng_.Bits64(report_.frames, /*draw=*/0)}));
    if (!report_.is_solved) report_.evaluation_return = result.mean_return;
    report_.is_solved =
        report_.is_solved || result.mean_return >= options_.solve_return;
    if (options_.say != nullptr) {
      options_.say(absl::StrFormat(
          "frames %d  updates %d  weights %d  return %.1f  kills %d  "
          "restarts %d",
          report_.frames, report_.updates, weights_->version(),
          result.mean_return, report_.kills, collector_->restarts()));
    }
    return absl::OkStatus();
  }

  void KillIfDue() {
    if (Clock::Steady().Now() < next_kill_) return;
    next_kill_ += options_.kill_every;
    const std::vector<pid_t> workers = Workers();
    if (workers.empty()) return;
    kill(workers[rng_.UniformInt(report_.kills, /*draw=*/1,
                                 static_cast<int64_t>(workers.size()))],
         SIGKILL);
    ++report_.kills;
  }

  // Rows that a cut has truncated: CartPole's own truncations are 500 steps
  // long, and learning ends before there are any but those.
  absl::Status CountCuts() {
    RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                          buffer_->ReadAll(LiveRowsShape::kFlat));
    RILL_ASSIGN_OR_RETURN(const auto truncated,
                          rows.Flat<bool>("next/truncated"));
    report_.cuts = std::count(truncated.begin(), truncated.end(), true);
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
  absl::Time next_kill_;
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
