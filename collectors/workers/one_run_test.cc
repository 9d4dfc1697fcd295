// SPDX-License-Identifier: Apache-2.0
// Workers are one run: what they draw is their own, and what they count is the
// run's, whatever died.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/arrivals.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/collectors/workers/worker_seed.h"
#include "rill/envs/classic_control/pendulum.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kLanes = 2;
constexpr int64_t kSteps = 10;  // Of a batch.

// Acts 0, and writes what its ActContext says to the leaf "run_frames".
class Zero final : public Policy {
 public:
  Zero() {
    RILL_EXPECT_OK(
        spec_.Set("run_frames", LeafSpec::Unbounded(DType::kInt64, {1})));
  }
  const TensorDictSpec& output_spec() const override { return spec_; }
  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext& context,
                              TensorDict* step) override {
    const auto action = *step->Flat<float>("action");
    std::fill(action.begin(), action.end(), 0);
    const auto frames = *step->Flat<int64_t>("run_frames");
    std::fill(frames.begin(), frames.end(), context.frames);
    return 0;
  }

 private:
  TensorDictSpec spec_;
};

// A policy by its name, with the defaults of what explores.
absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(absl::string_view name,
                                                   const EnvSpec& env,
                                                   Policy* zero) {
  if (name == "egreedy") return MakeEGreedy(zero, env, {.eps_end = 1});
  if (name == "gaussian") return MakeAdditiveGaussian(zero, env.action);
  if (name == "ou") return MakeOrnsteinUhlenbeck(zero, env.action);
  return MakeRandomPolicy(env);
}

class Wrapped final : public Policy {
 public:
  static absl::StatusOr<std::unique_ptr<Policy>> Create(absl::string_view name,
                                                        const EnvSpec& env) {
    auto wrapped = std::make_unique<Wrapped>();
    RILL_ASSIGN_OR_RETURN(wrapped->policy_,
                          MakePolicy(name, env, &wrapped->zero_));
    return wrapped;
  }
  const TensorDictSpec& output_spec() const override {
    return policy_->output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    return policy_->Act(root, context, step);
  }

 private:
  Zero zero_;
  std::unique_ptr<Policy> policy_;
};

// The argument: who acts. " dies": each life of worker 1 ends in a step; " dies
// once": its first one does, in its second batch.
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakePendulum({.lanes = kLanes}));
  const EnvSpec spec = parts.env->spec();
  if (absl::StartsWith(context.argument, "zero")) {
    parts.policy = std::make_unique<Zero>();
  } else {
    RILL_ASSIGN_OR_RETURN(
        parts.policy,
        Wrapped::Create(context.argument.substr(0, context.argument.find(' ')),
                        spec));
  }
  const bool dies_once = absl::EndsWith(context.argument, " dies once");
  if (context.worker == 1 && (absl::EndsWith(context.argument, " dies") ||
                              (dies_once && context.restarts == 0))) {
    const int64_t last =
        dies_once ? kSteps + 5
                  : Rng(3).UniformInt(context.restarts, /*draw=*/0, 3 * kSteps);
    parts.env =
        std::make_unique<HookedEnv>(std::move(parts.env), [last](int64_t step) {
          if (step == last) raise(SIGKILL);
        });
  }
  return parts;
}

MultiCollectorOptions Threads(int64_t workers, const std::string& argument) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = workers;
  options.worker = MakeWorker;
  options.argument = argument;
  options.frames_per_batch = workers * kLanes * kSteps;
  options.seed = 1;
  return options;
}

MultiCollectorOptions Processes(int64_t workers, const std::string& argument) {
  MultiCollectorOptions options = Threads(workers, argument);
  options.worker = nullptr;
  options.worker_name = "worker";
  options.max_restarts = 1000;
  return options;
}

template <typename T>
std::vector<T> Values(const TensorDict& batch, absl::string_view key) {
  const Tensor leaf = *batch.Get(key)->Contiguous();
  const auto values = *leaf.Flat<T>();
  return {values.begin(), values.end()};
}

class ExplorersTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, ExplorersTest,
                         ::testing::Values("egreedy", "gaussian", "ou",
                                           "random"),
                         [](const auto& info) { return info.param; });

// No number is drawn twice, in no run, worker, life, lane or step.
TEST_P(ExplorersTest, OfOneFunctionDrawOtherNumbersInEachWorkerAndStart) {
  std::map<float, std::string> seen;
  for (const uint64_t seed : {1, 2}) {
    MultiCollectorOptions options = Processes(3, GetParam() + " dies");
    options.seed = seed;
    RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                              MultiSyncCollector::Create(options));
    Arrivals got(3);
    while (got.numbers.size() < 6) {
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    }
    int64_t repeated = 0, rows = 0;
    for (int64_t w = 0; w < 3; ++w) {
      for (const TensorDict& batch : got.batches[w]) {
        for (const float action : Values<float>(batch, "action")) {
          ++rows;
          // Clipped ones are equal.
          if (std::abs(action) < 2)
            repeated += !seen.insert({action, ""}).second;
        }
      }
    }
    // Of 24 bits: by chance a few of a million pairs.
    EXPECT_LT(repeated, 5) << rows;
  }
}

TEST(OneRunTest, RunsOfNeighbouringSeedsShareNoEpisode) {
  std::set<std::vector<float>> starts;
  for (const uint64_t seed : {0, 1, 2, 3}) {
    MultiCollectorOptions options = Threads(4, "zero");
    options.seed = seed;
    RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                              MultiSyncCollector::Create(options));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    const auto observations = Values<float>(batch, "observation");
    for (size_t lane = 0; lane < 4 * kLanes; ++lane) {
      const auto first = observations.begin() + lane * kSteps * 3;
      EXPECT_TRUE(starts.insert({first, first + 3}).second)
          << "seed " << seed << ", lane " << lane;
    }
  }
}

TEST(OneRunTest, AWorkersFunctionGetsTheSeedOfItsWorker) {
  MultiCollectorOptions options = Threads(3, "zero");
  std::vector<uint64_t> seeds(3, 0);
  options.worker = [&](const WorkerContext& context) {
    seeds[context.worker] = context.seed;
    return MakeWorker(context);
  };
  RILL_ASSERT_OK(MultiSyncCollector::Create(options));
  EXPECT_THAT(seeds, ElementsAre(1, WorkerSeed(1, 1), WorkerSeed(1, 2)));
}

// What a policy of one collector would see that makes all rows.
TEST(OneRunTest, PoliciesSeeTheFramesOfAllWorkers) {
  for (const int64_t workers : {1, 2, 4}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto collector,
        MultiSyncCollector::Create(Threads(workers, "zero")));
    for (int64_t i = 0; i < 3; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
      const auto frames = Values<int64_t>(batch, "run_frames");
      for (int64_t row = 0; row < workers * kLanes * kSteps; ++row) {
        const int64_t step = i * kSteps + row % kSteps;
        ASSERT_EQ(frames[row], step * workers * kLanes) << row;
      }
    }
  }
}

// They end where the round does.
TEST(OneRunTest, WorkersOfOtherBatchSizesCountTheSameFrames) {
  MultiCollectorOptions options = Threads(2, "zero");
  options.frames_per_batch = 0;
  options.frames_per_worker = {kLanes * 3, kLanes * 7};
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  Arrivals got(2);
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_THAT(Values<int64_t>(*got.batches[0][1].Index(0), "run_frames"),
              ElementsAre(20, 26, 33));
  EXPECT_THAT(Values<int64_t>(*got.batches[1][1].Index(0), "run_frames"),
              ElementsAre(20, 22, 25, 28, 31, 34, 37));
}

// A schedule is over when the run has made its frames: as many actions are
// random as with one worker.
TEST(OneRunTest, AnnealingTakesTheSameFramesForAnyNumberOfWorkers) {
  for (const int64_t workers : {1, 4}) {
    MultiCollectorOptions options = Threads(workers, "zero");
    options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
      WorkerParts parts;
      RILL_ASSIGN_OR_RETURN(parts.env, MakePendulum({.lanes = kLanes}));
      static Zero zero;  // Writes nothing of its own.
      RILL_ASSIGN_OR_RETURN(
          parts.policy,
          MakeEGreedy(&zero, parts.env->spec(),
                      {.eps_end = 0, .annealing_num_steps = 1024}));
      return parts;
    };
    options.frames_per_batch = 1024;
    RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                              MultiSyncCollector::Create(options));
    int64_t random = 0;
    for (int64_t i = 0; i < 4; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
      for (const float action : Values<float>(batch, "action")) {
        random += action != 0;
      }
    }
    // 512 of 4,096, and a deviation of 13.
    EXPECT_NEAR(random, 512, 6 * 13) << workers;
  }
}

// A batch counts from the frames that were handed out when it was asked for, or
// when the next one was, and a round for each that the worker made meanwhile.
TEST(OneRunTest, AsynchronousWorkersKnowTheFramesAsFarAsTheyWereHandedOut) {
  constexpr int64_t kWorkers = 3;
  constexpr int64_t kRound = kWorkers * kLanes * kSteps;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiAsyncCollector::Create(Threads(kWorkers, "zero")));
  // What the next batches of each worker may begin with.
  std::vector<std::deque<std::vector<int64_t>>> begins(kWorkers,
                                                       {{0}, {kRound}});
  int64_t worker = 0;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    worker = info.producer;
    const auto frames = Values<int64_t>(batch, "run_frames");
    EXPECT_THAT(begins[worker].front(), Contains(frames[0]));
    for (int64_t t = 0; t < kSteps; ++t) {
      EXPECT_EQ(frames[t], frames[0] + t * kRound / kSteps);
    }
    begins[worker].pop_front();
    return absl::OkStatus();
  });
  for (int i = 0; i < 40; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(sink));
    begins[worker].front().push_back(collector->frames());
    begins[worker].push_back({collector->frames() + kRound});
  }
}

// Each worker's share of the random frames is made once, and the run's frames
// go on.
TEST(OneRunTest, AWorkerThatReplacesAnotherGoesOnWithTheRun) {
  constexpr int64_t kRandomSteps = 55;
  MultiCollectorOptions options = Processes(2, "zero dies");
  options.init_random_frames = 2 * kLanes * kRandomSteps;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  Arrivals got(2);
  for (int64_t i = 0; i < 12; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    for (int64_t w = 0; w < 2; ++w) {
      const auto actions = Values<float>(got.batches[w][i], "action");
      const auto frames = Values<int64_t>(got.batches[w][i], "run_frames");
      for (int64_t row = 0; row < kLanes * kSteps; ++row) {
        const int64_t step = i * kSteps + row % kSteps;
        EXPECT_EQ(actions[row] != 0, step < kRandomSteps) << w << " " << step;
        if (step >= kRandomSteps) {
          EXPECT_EQ(frames[row], step * 2 * kLanes);
        }
      }
    }
  }
  EXPECT_GT(collector->restarts(), 3);
}

// Also with states of before, which do not say what came before a worker.
TEST(OneRunTest, ARunWhoseWorkersDiedResumes) {
  for (const bool is_old : {false, true}) {
    MultiCollectorOptions options = Processes(2, "ou dies once");
    options.init_random_frames = 2 * kLanes * 45;
    RILL_ASSERT_OK_AND_ASSIGN(const auto first,
                              MultiSyncCollector::Create(options));
    for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(first->Next().status());
    ASSERT_EQ(first->restarts(), 1);
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, first->SaveState());
    if (is_old) {
      RILL_ASSERT_OK(saved.Delete("earlier_frames"));
      RILL_ASSERT_OK(saved.Delete("producer"));
    }
    options.seed = 99;
    RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                              MultiSyncCollector::Create(options));
    RILL_ASSERT_OK(second->LoadState(saved));
    EXPECT_EQ(second->frames(), first->frames());
    if (is_old) {
      RILL_EXPECT_OK(second->Next().status());
      continue;
    }
    for (int i = 0; i < 4; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, first->Next());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, second->Next());
      EXPECT_THAT(got, BitEqualTo(want)) << i;
    }
  }
}

TEST(OneRunTest, ACollectorOfOnesOwnCountsTheFramesThatItIsTold) {
  Zero zero;
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakePendulum({.lanes = kLanes}));
  options.policy = &zero;
  options.frames_per_batch = kLanes * 4;
  options.init_random_frames = 8;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            SyncCollector::Create(std::move(options)));
  // Frames 100 to 140 of a run; it has made its random ones before.
  collector->SetRunFrames({.before = 100, .during = 40, .earlier = 8});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(Values<int64_t>(*batch.Index(0), "run_frames"),
              ElementsAre(100, 110, 120, 130));
  EXPECT_THAT(Values<float>(batch, "action"), Each(0));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, collector->Next());
  EXPECT_THAT(Values<int64_t>(*next.Index(1), "run_frames"),
              ElementsAre(140, 150, 160, 170));
  EXPECT_EQ(collector->frames(), 16);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"worker", rill::MakeWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
