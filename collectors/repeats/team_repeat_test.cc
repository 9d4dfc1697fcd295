// SPDX-License-Identifier: Apache-2.0
// Runs of collectors whose workers are threads, recorded and repeated.
// examples/async_dqn has the one whose workers are processes that are killed.
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/recorder/flight_log.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/episodes/vec_norm.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// Acts by the newest weights, and by the frames of the run: both depend on when
// the other workers did what. And by the number of its batch.
class WeightsAndFramesPolicy final : public Policy {
 public:
  explicit WeightsAndFramesPolicy(WeightStore::Reader* weights)
      : weights_(weights) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    const WeightStore::Snapshot latest = weights_->Latest();
    const float weight = latest.weights.Find("w")->data<float>()[0];
    RILL_ASSIGN_OR_RETURN(const auto observation,
                          root.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(const auto action, step->Flat<int64_t>("action"));
    const size_t width = observation.size() / action.size();
    for (size_t lane = 0; lane < action.size(); ++lane) {
      const auto sum =
          static_cast<int64_t>(1000 * weight * observation[lane * width + 2]);
      action[lane] = (sum + context.frames / 16 + batches_) & 1;
    }
    return latest.version;
  }

  void BeginBatch() { ++batches_; }

 private:
  WeightStore::Reader* const weights_;
  int64_t batches_ = 0;
};

TensorDict WeightsOf(int64_t version) {
  TensorDict weights;
  RILL_EXPECT_OK(weights.Set(
      "w", *Tensor::From({static_cast<float>(version) + 0.5f}, {1})));
  return weights;
}

absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 2}));
  RILL_ASSIGN_OR_RETURN(
      parts.transforms.emplace_back(),
      VecNorm::Create({.shapes = {{4}}, .out_keys = {"normed"}}));
  auto policy = std::make_unique<WeightsAndFramesPolicy>(context.weights);
  parts.before_batch = [policy = policy.get()] {
    policy->BeginBatch();
    return absl::OkStatus();
  };
  parts.policy = std::move(policy);
  return parts;
}

std::string NewPath(absl::string_view name) {
  return ::testing::TempDir() + "/" + std::string(name);
}

// All that a run handed out.
struct Arrived {
  std::vector<TensorDict> batches = {};
  std::vector<WriteInfo> infos = {};
  std::vector<int64_t> cuts = {};            // Producers.
  std::vector<absl::StatusCode> codes = {};  // Of the calls.
  TensorDict statistics = {};
  Source::Times times = {};
};

struct RunOptions {
  MultiCollectorOptions collector = {};
  int calls = 24;
  int refuses_each = 0;  // > 0: the sink refuses each batch of this number.
  std::function<void(int call, Source*)> before_call = nullptr;
};

// With a recorder, which may be null. Weights are published after each call.
template <typename Collector>
absl::StatusOr<Arrived> RunWith(const RunOptions& options,
                                FlightRecorder* recorder) {
  RILL_ASSIGN_OR_RETURN(
      const auto weights,
      WeightStore::Create({.weights = WeightsOf(0), .recorder = recorder}));
  MultiCollectorOptions collector_options = options.collector;
  collector_options.weights = weights.get();
  collector_options.recorder = recorder;
  collector_options.producer = 7;
  RILL_ASSIGN_OR_RETURN(const auto collector,
                        Collector::Create(collector_options));
  Arrived arrived;
  int offers = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        if (options.refuses_each > 0 && ++offers % options.refuses_each == 0) {
          return ResourceExhausted("full");
        }
        RILL_ASSIGN_OR_RETURN(arrived.batches.emplace_back(), batch.Clone());
        arrived.infos.push_back(info);
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange /*lanes*/) {
        arrived.cuts.push_back(producer);
        return absl::OkStatus();
      });
  for (int call = 0; call < options.calls; ++call) {
    if (options.before_call != nullptr) {
      options.before_call(call, collector.get());
    }
    const absl::Status status = collector->CollectInto(sink);
    arrived.codes.push_back(status.code());
    if (absl::IsAborted(status) || absl::IsDataLoss(status)) return status;
    RILL_RETURN_IF_ERROR(weights->Publish(WeightsOf(call + 1)).status());
  }
  RILL_ASSIGN_OR_RETURN(arrived.statistics, collector->TransformStates());
  arrived.times = collector->times();
  if (recorder != nullptr) {
    RILL_RETURN_IF_ERROR(recorder->End());
  }
  return arrived;
}

MultiCollectorOptions ThreeThreads() {
  MultiCollectorOptions options;
  options.workers = 3;
  options.worker = MakeWorker;
  options.frames_per_batch = 3 * 2 * 8;
  options.seed = 11;
  return options;
}

void ExpectEqual(const Arrived& a, const Arrived& b) {
  ASSERT_EQ(a.batches.size(), b.batches.size());
  for (size_t i = 0; i < a.batches.size(); ++i) {
    RILL_EXPECT_OK(a.batches[i].CheckEqual(b.batches[i])) << i;
    EXPECT_EQ(a.infos[i].producer, b.infos[i].producer);
    EXPECT_EQ(a.infos[i].first_lane, b.infos[i].first_lane);
    EXPECT_EQ(a.infos[i].sequence, b.infos[i].sequence);
    EXPECT_EQ(a.infos[i].policy_version, b.infos[i].policy_version);
  }
  EXPECT_EQ(a.cuts, b.cuts);
  EXPECT_EQ(a.codes, b.codes);
  RILL_EXPECT_OK(a.statistics.CheckEqual(b.statistics));
}

// A run whose log is at `path` then.
template <typename Collector>
absl::StatusOr<Arrived> Record(const std::string& path,
                               const RunOptions& options) {
  RILL_ASSIGN_OR_RETURN(const auto recorder,
                        FlightRecorder::Record({.path = path}));
  return RunWith<Collector>(options, recorder.get());
}

// Records a run, repeats it, and expects that both are one.
template <typename Collector>
void ExpectRepeats(absl::string_view name, const RunOptions& options,
                   Arrived* run) {
  const std::string path = NewPath(name);
  RILL_ASSERT_OK_AND_ASSIGN(*run, Record<Collector>(path, options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(path));
  RILL_ASSERT_OK_AND_ASSIGN(const Arrived again,
                            RunWith<Collector>(options, recorder.get()));
  RILL_EXPECT_OK(recorder->status());
  ExpectEqual(*run, again);
  // Those of the repeat.
  EXPECT_GT(again.times.env, absl::ZeroDuration());
  EXPECT_GT(again.times.policy, absl::ZeroDuration());
}

TEST(TeamRepeatTest, BatchesThatMixByTimeComeAgainInTheirOrder) {
  Arrived run;
  ExpectRepeats<MultiAsyncCollector>(
      "async", {.collector = ThreeThreads(), .calls = 60}, &run);
  EXPECT_EQ(run.batches.size(), 60);
  // Its weights were published on the way.
  EXPECT_GT(run.infos.back().policy_version, 0);
}

TEST(TeamRepeatTest, RoundsAreRepeated) {
  Arrived run;
  ExpectRepeats<MultiSyncCollector>("sync", {.collector = ThreeThreads()},
                                    &run);
  EXPECT_EQ(run.batches.size(), 3 * 24);
}

TEST(TeamRepeatTest, BatchesThatWereInterruptedAreAsShort) {
  MultiCollectorOptions collector = ThreeThreads();
  collector.frames_per_batch = 3 * 2 * 200;
  collector.preemptive_threshold = 0.3;
  Arrived run;
  ExpectRepeats<MultiSyncCollector>("short", {.collector = collector}, &run);
  EXPECT_TRUE(std::any_of(
      run.batches.begin(), run.batches.end(),
      [](const TensorDict& batch) { return batch.batch_shape()[1] < 200; }));
}

TEST(TeamRepeatTest, RefusedBatchesAreOfferedAgain) {
  Arrived run;
  ExpectRepeats<MultiAsyncCollector>(
      "refused", {.collector = ThreeThreads(), .refuses_each = 4}, &run);
  EXPECT_EQ(run.batches.size(), 18);
}

TEST(TeamRepeatTest, StoppedCallsAreStoppedAgain) {
  Arrived run;
  RunOptions options = {.collector = ThreeThreads()};
  int runs = 0;
  options.before_call = [&](int call, Source* source) {
    // By another clock in the repeat, whose calls are stopped as the run's.
    if (call == 0) ++runs;
    if (call == (runs == 1 ? 5 : 7)) source->Stop();
  };
  ExpectRepeats<MultiAsyncCollector>("stopped", options, &run);
  EXPECT_EQ(run.codes[5], absl::StatusCode::kCancelled);
}

TEST(TeamRepeatTest, CallsThatMayBeInterruptedAreRefused) {
  RunOptions options = {.collector = ThreeThreads()};
  options.collector.is_interrupted = [] { return false; };
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto recorder,
      FlightRecorder::Record({.path = NewPath("interrupted")}));
  EXPECT_THAT(RunWith<MultiAsyncCollector>(options, recorder.get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("recorder: got one beside is_interrupted")));
}

TEST(TeamRepeatTest, StaleBatchesAreDroppedAgain) {
  MultiCollectorOptions collector = ThreeThreads();
  collector.max_staleness = 1;
  Arrived run;
  ExpectRepeats<MultiAsyncCollector>(
      "stale", {.collector = collector, .calls = 60}, &run);
  EXPECT_FALSE(run.cuts.empty());
}

// MakeWorker, whose third batch has an error.
absl::StatusOr<WorkerParts> MakeFailingWorker(const WorkerContext& context) {
  RILL_ASSIGN_OR_RETURN(WorkerParts parts, MakeWorker(context));
  parts.before_batch = [begin = std::move(parts.before_batch),
                        batches = int64_t{0}]() mutable -> absl::Status {
    RILL_RETURN_IF_ERROR(begin());
    if (++batches == 3) return ResourceExhausted("no licence");
    return absl::OkStatus();
  };
  return parts;
}

TEST(TeamRepeatTest, ARepeatEndsWhereAWorkersPartsFailed) {
  RunOptions options = {.collector = ThreeThreads()};
  options.collector.worker = MakeFailingWorker;
  const std::string path = NewPath("failed");
  RILL_ASSERT_OK_AND_ASSIGN(const Arrived run,
                            Record<MultiAsyncCollector>(path, options));
  EXPECT_THAT(run.codes,
              ::testing::Contains(absl::StatusCode::kResourceExhausted));
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(path));
  EXPECT_THAT(RunWith<MultiAsyncCollector>(options, recorder.get()),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("failed here, with RESOURCE_EXHAUSTED")));
}

TEST(TeamRepeatTest, PartsThatFailInTheRepeatAloneAreADifference) {
  RunOptions options = {.collector = ThreeThreads()};
  const std::string path = NewPath("fails_again");
  RILL_ASSERT_OK(Record<MultiAsyncCollector>(path, options).status());
  options.collector.worker = MakeFailingWorker;
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(path));
  EXPECT_THAT(RunWith<MultiAsyncCollector>(options, recorder.get()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("RESOURCE_EXHAUSTED: no licence")));
  EXPECT_THAT(recorder->status(), StatusIs(absl::StatusCode::kDataLoss));
}

// The log, whose last batch comes of a worker that was killed and replaced.
void KillLastWorker(const std::string& path) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string log, ReadFile(path));
  RILL_ASSERT_OK_AND_ASSIGN(auto decoder, FlightDecoder::Create(log));
  std::vector<FlightEvent> events;
  size_t last = 0;
  for (FlightEvent event; decoder.Next(&event);) {
    if (event.decision.kind == Decision::Kind::kArrival) last = events.size();
    events.push_back(event);
  }
  FlightEvent killed = events[last];
  const int64_t worker = killed.decision.numbers[0];
  killed.decision.kind = Decision::Kind::kReplace;
  killed.decision.numbers = {worker, 0, SIGKILL, 0};
  killed.decision.digest = 0;
  events.insert(events.begin() + static_cast<int64_t>(last), killed);
  FlightEncoder encoder;
  std::string bytes, all;
  RILL_ASSERT_OK(encoder.Begin(decoder.head(), &all));
  for (const FlightEvent& event : events) {
    RILL_ASSERT_OK(encoder.Add(event, &bytes));
    all += bytes;
  }
  RILL_ASSERT_OK(WriteFileAtomically(path, all));
}

TEST(TeamRepeatTest, AWorkerThatCannotBeMadeAgainIsADifference) {
  RunOptions options = {.collector = ThreeThreads()};
  options.collector.max_restarts = 1;
  const std::string path = NewPath("not_again");
  RILL_ASSERT_OK(Record<MultiAsyncCollector>(path, options).status());
  KillLastWorker(path);
  options.collector.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    if (context.restarts > 0) throw std::runtime_error("no display");
    return MakeWorker(context);
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorder, FlightRecorder::Repeat(path));
  EXPECT_THAT(RunWith<MultiAsyncCollector>(options, recorder.get()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("INTERNAL: WorkerFunction: threw "
                                 "std::runtime_error: no display")));
}

TEST(TeamRepeatTest, AnotherProgramIsNotTakenForTheRun) {
  const std::string path = NewPath("another");
  const RunOptions options = {.collector = ThreeThreads()};
  RILL_ASSERT_OK(Record<MultiAsyncCollector>(path, options).status());
  RunOptions more_calls = options, other_seed = options, other_env = options;
  more_calls.calls = 25;
  other_seed.collector.seed = 12;
  other_env.collector.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    RILL_ASSIGN_OR_RETURN(WorkerParts parts, MakeWorker(context));
    parts.transforms.clear();
    return parts;
  };
  for (const RunOptions& other : {more_calls, other_seed, other_env}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto recorder,
                              FlightRecorder::Repeat(path));
    EXPECT_THAT(RunWith<MultiAsyncCollector>(other, recorder.get()),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("this is not the same run")));
  }
}

TEST(TeamRepeatTest, WhatNoRepeatCanDoIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto recorder,
      FlightRecorder::Record({.path = NewPath("refuses")}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto weights,
                            WeightStore::Create({.weights = WeightsOf(0)}));
  MultiCollectorOptions options = ThreeThreads();
  options.weights = weights.get();
  options.recorder = recorder.get();
  EXPECT_THAT(MultiAsyncCollector::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want the same in WeightStore::Options")));
  RILL_ASSERT_OK_AND_ASSIGN(const auto recorded,
                            WeightStore::Create({.weights = WeightsOf(0),
                                                 .recorder = recorder.get()}));
  options.weights = recorded.get();
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  for (const absl::Status& status :
       {collector->Pause(), collector->SaveState().status(),
        collector->LoadState({}), collector->LoadTransformStates({})}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("recorder: got one")));
  }
}

}  // namespace
}  // namespace rill
