// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/sources/trajectory_source.h"

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/trajectory_id.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/split_trajectories.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Format = TrajectorySource::Format;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

std::unique_ptr<TrajectorySource> Whole(TrajectorySource::Options options) {
  auto made = TrajectorySource::Create(std::move(options));
  RILL_EXPECT_OK(made);
  return *std::move(made);
}

std::unique_ptr<SyncCollector> CartPoles(int64_t frames_per_batch,
                                         int64_t total_frames = -1) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCartPole({.lanes = 4});
  options.frames_per_batch = frames_per_batch;
  options.total_frames = total_frames;
  options.seed = 3;
  return *SyncCollector::Create(std::move(options));
}

// The trajectories of a batch without padding, apart by their ends.
std::vector<TensorDict> Apart(const TensorDict& batch) {
  std::vector<TensorDict> apart;
  const TensorDict steps = *batch.Reshape({batch.batch_shape()[1]});
  const bool* const done = steps.Find("next/done")->data<bool>();
  int64_t begin = 0;
  for (int64_t i = 0; i < steps.batch_shape()[0]; ++i) {
    if (!done[i]) continue;
    apart.push_back(*steps.Slice(0, begin, i + 1)->Clone());
    begin = i + 1;
  }
  EXPECT_EQ(begin, steps.batch_shape()[0]) << "the last one is not whole";
  return apart;
}

int64_t IdOf(const TensorDict& trajectory) {
  return trajectory.Find("collector/traj_ids")->data<int64_t>()[0];
}

TEST(TrajectorySourceTest, Example) {
  std::unique_ptr<Source> collector = CartPoles(64);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto episodes, TrajectorySource::Create({.source = std::move(collector),
                                               .trajectories_per_batch = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, episodes->Next());
  EXPECT_EQ(batch.batch_shape()[0], 4);
}

// Batches by script: [lanes, time] of whatever the test puts there.
class ScriptedSource final : public Source {
 public:
  struct Part {
    TensorDict batch = {};  // Without leaves: a cut.
    WriteInfo info = {};
    LaneRange lanes = {};  // Of the cut.
  };

  ScriptedSource(TensorDictSpec spec, std::vector<Part> parts)
      : spec_(std::move(spec)), parts_(std::move(parts)) {}

  const TensorDictSpec& spec() const override { return spec_; }
  int64_t frames() const override { return 0; }
  const Times& times() const override { return times_; }
  absl::StatusOr<TensorDict> Next() override {
    return absl::UnimplementedError("batches and cuts go to a sink");
  }
  absl::Status CollectInto(Sink& sink) override {
    if (next_ == parts_.size()) return absl::OutOfRangeError("the end");
    const Part& part = parts_[next_++];
    return part.batch.empty() ? sink.Cut(0, part.lanes)
                              : sink.Write(part.batch, part.info);
  }
  void Stop() override {}
  absl::StatusOr<TensorDict> SaveState() const override {
    TensorDict state;
    RILL_RETURN_IF_ERROR(state.Set(
        "next",
        *Tensor::From<int64_t>({static_cast<int64_t>(next_)}, Shape({}))));
    return state;
  }
  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(const Tensor next, state.Get("next"));
    next_ = static_cast<size_t>(next.data<int64_t>()[0]);
    return absl::OkStatus();
  }

 private:
  const TensorDictSpec spec_;
  const std::vector<Part> parts_;
  size_t next_ = 0;
  Times times_;
};

TensorDictSpec ScriptSpec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {3})));
  RILL_EXPECT_OK(
      spec.Set("agents/left/id", LeafSpec::Unbounded(DType::kUInt8, {})));
  RILL_EXPECT_OK(spec.Set("next/done", LeafSpec::Unbounded(DType::kBool, {1})));
  RILL_EXPECT_OK(
      spec.Set("policy_version", LeafSpec::Unbounded(DType::kInt64, {1})));
  RILL_EXPECT_OK(
      spec.Set("collector/traj_ids", LeafSpec::Unbounded(DType::kInt64, {})));
  return spec;
}

// A run of random episodes, batch sizes, missing steps, cuts and batches that
// are left out, and beside it which trajectories are whole, in their order.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : rng_(seed, RngStream::kUser) {
    lanes_.resize(static_cast<size_t>(1 + Any(4)));
    longest_ = 1 + Any(12);
    for (int64_t b = 1; b <= 20; ++b) {
      if (Any(5) == 0) Cut();
      AddBatch(b, /*is_left_out=*/Any(10) == 0);
    }
  }

  std::vector<ScriptedSource::Part> parts;
  std::vector<TensorDict> whole;

 private:
  struct Lane {
    std::vector<TensorDict> steps = {};  // Of the episode so far.
    int64_t id = 0;
    int64_t left = 0;  // Steps until its end.
    bool is_whole = true;
    bool is_behind_gap = false;
  };

  int64_t Any(int64_t bound) { return rng_.UniformInt(0, draws_++, bound); }

  // A lane begins anew behind it, or goes on with what is no whole trajectory.
  void Cut() {
    const auto lanes = static_cast<int64_t>(lanes_.size());
    const int64_t first = Any(lanes);
    const int64_t count = 1 + Any(lanes - first);
    for (int64_t l = first; l < first + count; ++l) {
      if (Any(2) == 0) lanes_[l].left = 0;
      lanes_[l].is_whole = lanes_[l].steps.empty();
    }
    parts.push_back({.lanes = {.first = 10 + first, .count = count}});
  }

  void AddBatch(int64_t number, bool is_left_out) {
    const auto lanes = static_cast<int64_t>(lanes_.size());
    const int64_t time = 1 + Any(8);
    TensorDict batch = *ScriptSpec().Random({lanes, time}, rng_,
                                            static_cast<uint64_t>(number));
    bool* const done = batch.Find("next/done")->data<bool>();
    int64_t* const ids = batch.Find("collector/traj_ids")->data<int64_t>();
    std::vector<std::pair<int64_t, TensorDict>> ended;
    for (int64_t l = 0; l < lanes; ++l) {
      Lane& lane = lanes_[l];
      // Steps are missing at the end of a batch.
      const int64_t made = Any(4) == 0 ? Any(time + 1) : time;
      for (int64_t t = 0; t < time; ++t) {
        const int64_t row = l * time + t;
        if (t >= made) {
          ids[row] = -1;
          continue;
        }
        // Now and then a lane begins anew without an end or a cut.
        if (lane.left == 0 || Any(30) == 0) {
          lane.steps.clear();
          lane.id = next_id_++;
          lane.left = 1 + Any(longest_);
          lane.is_whole = true;
        }
        if (is_left_out || lane.is_behind_gap) lane.is_whole = false;
        lane.is_behind_gap = is_left_out;
        ids[row] = lane.id;
        done[row] = --lane.left == 0;
        lane.steps.push_back(*batch.SelectDim(0, l)->Index(t));
        if (!done[row]) continue;
        if (lane.is_whole) ended.emplace_back(t, *Stack(lane.steps));
        lane.steps.clear();
      }
      lane.is_behind_gap = lane.is_behind_gap || is_left_out;
      if (is_left_out) lane.is_whole = false;
    }
    std::stable_sort(
        ended.begin(), ended.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [t, trajectory] : ended) whole.push_back(trajectory);
    if (is_left_out) return;
    parts.push_back({.batch = std::move(batch),
                     .info = {.first_lane = 10, .sequence = number}});
  }

  const Rng rng_;
  uint32_t draws_ = 0;
  std::vector<Lane> lanes_;
  int64_t longest_ = 0;
  int64_t next_id_ = 0;
};

std::unique_ptr<TrajectorySource> Scripted(const RandomRun& run, int64_t k,
                                           Format format) {
  return Whole(
      {.source = std::make_unique<ScriptedSource>(ScriptSpec(), run.parts),
       .trajectories_per_batch = k,
       .format = format});
}

TEST(TrajectorySourceTest, EachWholeTrajectoryComesOnceInItsOrder) {
  int64_t trajectories = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomRun run(seed);
    const int64_t k = 1 + static_cast<int64_t>(seed % 5);
    const auto source = Scripted(run, k, Format::kCat);
    std::vector<TensorDict> got;
    int64_t frames = 0;
    while (true) {
      const auto batch = source->Next();
      if (absl::IsOutOfRange(batch.status())) break;
      RILL_ASSERT_OK(batch);
      frames += batch->batch_shape().num_elements();
      const std::vector<TensorDict> apart = Apart(*batch);
      got.insert(got.end(), apart.begin(), apart.end());
      // Only the last batch has fewer.
      if (got.size() < run.whole.size()) {
        EXPECT_THAT(apart, SizeIs(k));
      }
    }
    ASSERT_EQ(got.size(), run.whole.size()) << "seed " << seed;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_THAT(got[i], BitEqualTo(run.whole[i])) << "seed " << seed;
    }
    EXPECT_EQ(source->frames(), frames);
    trajectories += static_cast<int64_t>(got.size());
  }
  EXPECT_GT(trajectories, 300);
}

TEST(TrajectorySourceTest, APaddedBatchIsWhatSplitTrajectoriesMakes) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RandomRun run(seed);
    const auto cat = Scripted(run, 3, Format::kCat);
    const auto padded = Scripted(run, 3, Format::kPadded);
    while (true) {
      const auto steps = cat->Next();
      if (absl::IsOutOfRange(steps.status())) break;
      RILL_ASSERT_OK(steps);
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                                SplitTrajectories(*steps));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, padded->Next());
      EXPECT_THAT(got, BitEqualTo(want));
      RILL_EXPECT_OK(padded->spec().CheckLayout("Test", got));
    }
  }
}

// At every moment of a run.
TEST(TrajectorySourceTest, ALoadedStateGoesOnWithTheStepsThatWait) {
  const RandomRun run(7);
  const auto whole = Scripted(run, 2, Format::kCat);
  auto source = Scripted(run, 2, Format::kCat);
  while (true) {
    const auto want = whole->Next();
    const auto got = source->Next();
    ASSERT_EQ(got.status(), want.status());
    if (!want.ok()) break;
    EXPECT_THAT(*got, BitEqualTo(*want));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, source->SaveState());
    source = Scripted(run, 2, Format::kCat);
    RILL_ASSERT_OK(source->LoadState(state));
    EXPECT_EQ(source->frames(), whole->frames());
    EXPECT_THAT(source->SaveState(), IsOkAndHolds(BitEqualTo(state)));
  }
}

TEST(TrajectorySourceTest, AStateThatDoesNotFitIsRefusedByName) {
  const RandomRun run(7);
  const auto source = Scripted(run, 2, Format::kCat);
  RILL_ASSERT_OK(source->Next());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, source->SaveState());
  const auto refused = [&](absl::string_view key, Tensor value) {
    TensorDict other = state;
    RILL_EXPECT_OK(other.Set(key, std::move(value)));
    EXPECT_THAT(source->LoadState(other),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("TrajectorySource::LoadState: ")));
    EXPECT_THAT(source->SaveState(), IsOkAndHolds(BitEqualTo(state)));
  };
  refused("frames", *Tensor::From<int64_t>({-1}, Shape({1})));
  refused("sequence", *Tensor::From<float>({0}, Shape({1})));
  refused("newest", *Tensor::From<int64_t>({0, 1, 2}, Shape({3})));
  refused("whole/lengths", *Tensor::From<int64_t>({1 << 20}, Shape({1})));
  const int64_t steps = state.FindDict("whole/steps")->batch_shape()[1];
  refused("whole/lengths", *Tensor::From<int64_t>({-1, steps + 1}, Shape({2})));
  refused("open/lengths", *Tensor::From<int64_t>({-1, 2}, Shape({2})));
  refused("open/lanes", *Tensor::From<int64_t>({1}, Shape({1})));
  refused("open/dropped", *Tensor::From<int64_t>({1}, Shape({1})));
  TensorDict other = state;
  RILL_ASSERT_OK(other.Delete("source"));
  EXPECT_THAT(
      source->LoadState(other),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"source\"")));
}

// --- Over each collector ----------------------------------------------------

absl::StatusOr<WorkerParts> CountingWorker(const WorkerContext& /*context*/) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(
      parts.env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 5, .stagger_steps = 2}));
  return parts;
}

// Ends its process in its step number 13, in the middle of a batch and of
// episodes.
absl::StatusOr<WorkerParts> FatalWorker(const WorkerContext& context) {
  RILL_ASSIGN_OR_RETURN(WorkerParts parts, CountingWorker(context));
  if (context.worker == 1 && context.restarts < 3) {
    parts.env =
        std::make_unique<HookedEnv>(std::move(parts.env), [](int64_t step) {
          if (step == 13) raise(SIGKILL);
        });
  }
  return parts;
}

// Two workers' lanes have episodes of 5 and 7 steps, batches 2 steps a lane.
MultiCollectorOptions CountingWorkers() {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 2;
  options.worker = CountingWorker;
  options.frames_per_batch = 2 * 2 * 2;
  return options;
}

std::unique_ptr<Source> OverOneThread() {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = std::move(CountingWorker({})->env);
  options.frames_per_batch = 2 * 2;
  return *SyncCollector::Create(std::move(options));
}
std::unique_ptr<Source> OverSyncWorkers() {
  return *MultiSyncCollector::Create(CountingWorkers());
}
std::unique_ptr<Source> OverAsyncWorkers() {
  return *MultiAsyncCollector::Create(CountingWorkers());
}

MultiCollectorOptions FatalProcesses() {
  MultiCollectorOptions options = CountingWorkers();
  options.worker = nullptr;
  options.worker_name = "fatal";
  options.max_restarts = 3;
  return options;
}
std::unique_ptr<Source> OverSyncProcesses() {
  return *MultiSyncCollector::Create(FatalProcesses());
}
std::unique_ptr<Source> OverAsyncProcesses() {
  return *MultiAsyncCollector::Create(FatalProcesses());
}

struct Collector {
  const char* name;
  std::unique_ptr<Source> (*make)();
};

class TrajectoriesOfTest : public ::testing::TestWithParam<Collector> {};

// From its first step to the terminated one.
void ExpectWhole(const TensorDict& steps) {
  const int64_t count = steps.batch_shape()[0];
  EXPECT_THAT(count, ::testing::AnyOf(5, 7));
  for (int64_t t = 0; t < count; ++t) {
    EXPECT_EQ(steps.Find("observation")->data<float>()[t], t);
    EXPECT_EQ(steps.Find("next/terminated")->data<bool>()[t], t == count - 1);
    EXPECT_EQ(steps.Find("next/done")->data<bool>()[t], t == count - 1);
    EXPECT_EQ(steps.Find("collector/traj_ids")->data<int64_t>()[t],
              IdOf(steps));
  }
}

// Processes of worker 1 are killed on the way, three times.
TEST_P(TrajectoriesOfTest, E7_KTrajectoriesABatchAreWholeAlsoAcrossBatches) {
  const auto source =
      Whole({.source = GetParam().make(), .trajectories_per_batch = 3});
  std::set<int64_t> ids;
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
    ASSERT_EQ(batch.batch_shape()[0], 3);
    for (int64_t n = 0; n < 3; ++n) {
      const TensorDict steps = *batch.Index(n);
      const bool* const mask = steps.Find("collector/mask")->data<bool>();
      const int64_t longest = steps.batch_shape()[0];
      const int64_t count = std::count(mask, mask + longest, true);
      EXPECT_EQ(std::count(mask, mask + count, true), count);
      ExpectWhole(*steps.Slice(0, 0, count));
      for (int64_t t = count; t < longest; ++t) {
        EXPECT_EQ(steps.Find("observation")->data<float>()[t], 0);
      }
      EXPECT_TRUE(ids.insert(IdOf(steps)).second) << "came twice";
    }
  }
}

TEST_P(TrajectoriesOfTest, E7_CatHasNoPadding) {
  const auto source = Whole({.source = GetParam().make(),
                             .trajectories_per_batch = 3,
                             .format = Format::kCat});
  EXPECT_EQ(source->spec().Find("collector/mask"), nullptr);
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
    ASSERT_EQ(batch.batch_shape()[0], 1);
    const std::vector<TensorDict> apart = Apart(batch);
    EXPECT_THAT(apart, SizeIs(3));
    for (const TensorDict& steps : apart) ExpectWhole(steps);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Collectors, TrajectoriesOfTest,
    ::testing::Values(
        Collector{"SyncCollector", OverOneThread},
        Collector{"MultiSyncCollector", OverSyncWorkers},
        Collector{"MultiAsyncCollector", OverAsyncWorkers},
        Collector{"MultiSyncCollectorOfProcesses", OverSyncProcesses},
        Collector{"MultiAsyncCollectorOfProcesses", OverAsyncProcesses}),
    [](const auto& info) { return info.param.name; });

TEST(TrajectorySourceTest, AWorkerThatDiesLosesNoTrajectoryOfAnother) {
  auto collector = *MultiSyncCollector::Create(FatalProcesses());
  const MultiSyncCollector* const processes = collector.get();
  const auto source = Whole({.source = std::move(collector),
                             .trajectories_per_batch = 3,
                             .format = Format::kCat});
  std::map<int64_t, std::vector<int64_t>> numbers;  // By producer.
  for (int i = 0; i < 30; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
    for (const TensorDict& steps : Apart(batch)) {
      ExpectWhole(steps);
      const int64_t id = IdOf(steps);
      numbers[TrajectoryProducer(id)].push_back(TrajectoryNumber(id));
    }
  }
  EXPECT_EQ(processes->restarts(), 3);
  EXPECT_THAT(numbers, SizeIs(5));
  // The oldest one that is missing is open.
  std::vector<int64_t>& of_other = numbers[0];
  std::sort(of_other.begin(), of_other.end());
  EXPECT_LE(of_other.back() + 1 - static_cast<int64_t>(of_other.size()), 1);
}

// Acts with the newest version.
class NewestPolicy final : public Policy {
 public:
  explicit NewestPolicy(WeightStore::Reader* weights) : weights_(weights) {}
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& /*context*/,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const auto actions, step->Flat<int64_t>("action"));
    std::fill(actions.begin(), actions.end(), 1);
    return weights_->Latest().version;
  }

 private:
  WeightStore::Reader* const weights_;
};

// Episodes go on behind a batch that was dropped.
TEST(TrajectorySourceTest, WithoutItsFirstStepsATrajectoryIsNotWhole) {
  TensorDict weights;
  RILL_ASSERT_OK(weights.Set("w", *Tensor::Zeros(DType::kFloat32, {1})));
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = weights}));
  MultiCollectorOptions options = CountingWorkers();
  options.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    RILL_ASSIGN_OR_RETURN(WorkerParts parts, CountingWorker(context));
    parts.policy = std::make_unique<NewestPolicy>(context.weights);
    return parts;
  };
  options.weights = store.get();
  options.max_staleness = 0;
  auto collector = *MultiAsyncCollector::Create(options);
  const MultiAsyncCollector* const workers = collector.get();
  const auto source =
      Whole({.source = std::move(collector), .format = Format::kCat});
  for (int i = 0; i < 50; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
    for (const TensorDict& steps : Apart(batch)) ExpectWhole(steps);
    RILL_ASSERT_OK(store->Publish(weights).status());
  }
  EXPECT_GT(workers->stale_frames(), 0);
}

TEST(TrajectorySourceTest, TruncatedEpisodesAreWhole) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCountingEnv({.episode_steps = 4, .ends_truncated = true});
  options.frames_per_batch = 3;
  const auto source =
      Whole({.source = *SyncCollector::Create(std::move(options))});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({1, 4}));
}

TEST(TrajectorySourceTest, TheLastBatchOfARunHasWhatIsLeft) {
  // Episodes of 3 steps: 4 of them, and one that stays open.
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCountingEnv({.episode_steps = 3});
  options.frames_per_batch = 7;
  options.total_frames = 14;
  const auto source =
      Whole({.source = *SyncCollector::Create(std::move(options)),
             .trajectories_per_batch = 3});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, source->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({3, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(batch, source->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({1, 3}));
  EXPECT_THAT(source->Next(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(source->frames(), 12);
}

// An environment that fails is reset: what was open has no end.
TEST(TrajectorySourceTest, WhatAFailureCutsIsDropped) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env =
      std::make_unique<FaultyEnv>(*MakeCountingEnv({.episode_steps = 5}),
                                  FaultyEnv::Options{.fail_step = 3});
  options.frames_per_batch = 2;
  const auto source =
      Whole({.source = *SyncCollector::Create(std::move(options))});
  EXPECT_THAT(source->Next(), StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({1, 5}));
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 2, 3, 4)));
}

TEST(TrajectorySourceTest, StopEndsAWaitForATrajectoryThatNeverEnds) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCountingEnv({.episode_steps = int64_t{1} << 40});
  options.frames_per_batch = 1;
  auto collector = *SyncCollector::Create(std::move(options));
  // Stops the source around it from inside the wait.
  class Stopping final : public Source {
   public:
    explicit Stopping(std::unique_ptr<Source> source)
        : source_(std::move(source)) {}
    const TensorDictSpec& spec() const override { return source_->spec(); }
    int64_t frames() const override { return source_->frames(); }
    const Times& times() const override { return source_->times(); }
    absl::StatusOr<TensorDict> Next() override { return source_->Next(); }
    absl::Status CollectInto(Sink& sink) override {
      if (++batches_ == 5) around_->Stop();
      return source_->CollectInto(sink);
    }
    void Stop() override {}
    absl::StatusOr<TensorDict> SaveState() const override {
      return source_->SaveState();
    }
    absl::Status LoadState(const TensorDict& state) override {
      return source_->LoadState(state);
    }
    Source* around_ = nullptr;

   private:
    const std::unique_ptr<Source> source_;
    int batches_ = 0;
  };
  auto stopping = std::make_unique<Stopping>(std::move(collector));
  Stopping* const inside = stopping.get();
  const auto source = Whole({.source = std::move(stopping)});
  inside->around_ = source.get();
  EXPECT_THAT(source->Next(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(inside->frames(), 5);
}

// --- Into a sink ------------------------------------------------------------

TEST(TrajectorySourceTest, ASinkGetsOneLaneUnderItsNumbers) {
  const RandomRun run(3);
  TrajectorySource::Options options;
  options.source = std::make_unique<ScriptedSource>(ScriptSpec(), run.parts);
  options.trajectories_per_batch = 2;
  options.producer = 6;
  options.lane = 4;
  const auto source = Whole(std::move(options));
  std::vector<int64_t> numbers;
  size_t next = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& info) {
        EXPECT_EQ(info.producer, 6);
        EXPECT_EQ(info.first_lane, 4);
        const auto versions = *batch.Flat<int64_t>("policy_version");
        EXPECT_EQ(info.policy_version,
                  *std::max_element(versions.begin(), versions.end()));
        numbers.push_back(info.sequence);
        for (const TensorDict& steps : Apart(batch)) {
          EXPECT_THAT(steps, BitEqualTo(run.whole[next++]));
        }
        return absl::OkStatus();
      },
      [](int64_t, LaneRange) {
        return absl::InternalError("nothing is open in the sink");
      });
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(source->CollectInto(sink));
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
  EXPECT_EQ(next, 6);
}

// The buffer stores the same trajectories, and no slice spans two.
TEST(TrajectorySourceTest, AReplayBufferHasTheTrajectories) {
  const auto want = Whole({.source = CartPoles(64),
                           .trajectories_per_batch = 5,
                           .format = Format::kCat});
  const auto source =
      Whole({.source = CartPoles(64), .trajectories_per_batch = 5});
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            DenseStorage::Create({.capacity = 4096}));
  ReplayBuffer::Options options;
  options.storage = std::move(storage);
  options.sampler = *MakeSliceSampler({.length = 8});
  options.batch_size = 8 * 100;
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer,
                            ReplayBuffer::Create(std::move(options)));
  std::vector<TensorDict> trajectories;
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK(source->CollectInto(*buffer));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, want->Next());
    for (TensorDict& steps : Apart(batch)) {
      trajectories.push_back(std::move(steps));
    }
  }
  size_t next = 0;
  RILL_ASSERT_OK(buffer->Iterate(
      {.only_whole = true},
      [&](const StoredTrajectory& stored) -> absl::StatusOr<bool> {
        EXPECT_THAT(stored.rows, BitEqualTo(trajectories[next++]));
        return true;
      }));
  EXPECT_EQ(next, 50);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict slices, buffer->Sample());
  const int64_t* const ids = slices.Find("collector/traj_ids")->data<int64_t>();
  for (int64_t i = 0; i < 8 * 100; ++i) EXPECT_EQ(ids[i], ids[i / 8 * 8]);
}

// --- Options and conformance ------------------------------------------------

TEST(TrajectorySourceTest, WrongOptionsAndSourcesAreNamed) {
  EXPECT_THAT(TrajectorySource::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("source: got null")));
  EXPECT_THAT(
      TrajectorySource::Create(
          {.source = CartPoles(8), .trajectories_per_batch = 0}),
      StatusIs(kInvalidArgument, HasSubstr("trajectories_per_batch: got 0")));
  EXPECT_THAT(TrajectorySource::Create({.source = CartPoles(8), .lane = -1}),
              StatusIs(kInvalidArgument, HasSubstr("lane: got -1")));
  EXPECT_THAT(
      TrajectorySource::Create(
          {.source = CartPoles(8), .done_key = "next/over"}),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("\"next/over\""),
                                       HasSubstr("got none, want bool[1]"))));
  const auto create = [](const TensorDictSpec& spec) {
    return TrajectorySource::Create(
        {.source = std::make_unique<ScriptedSource>(
             spec, std::vector<ScriptedSource::Part>())});
  };
  TensorDictSpec spec = ScriptSpec();
  RILL_ASSERT_OK(
      spec.Set("collector/traj_ids", LeafSpec::Unbounded(DType::kInt32, {})));
  EXPECT_THAT(create(spec),
              StatusIs(kInvalidArgument, HasSubstr("got int32[], want int64")));
  spec = ScriptSpec();
  RILL_ASSERT_OK(
      spec.Set("collector/mask", LeafSpec::Unbounded(DType::kBool, {1})));
  EXPECT_THAT(create(spec),
              StatusIs(kInvalidArgument, HasSubstr("\"collector/mask\"")));
  spec = ScriptSpec();
  RILL_ASSERT_OK(spec.SetNonTensor("task"));
  EXPECT_THAT(create(spec), StatusIs(kInvalidArgument, HasSubstr("\"task\"")));
}

absl::StatusOr<std::unique_ptr<Source>> MakePadded() {
  return Whole({.source = CartPoles(64), .trajectories_per_batch = 3});
}
absl::StatusOr<std::unique_ptr<Source>> MakeCat() {
  return Whole({.source = CartPoles(64),
                .trajectories_per_batch = 3,
                .format = Format::kCat});
}
absl::StatusOr<std::unique_ptr<Source>> MakeOverSyncWorkers() {
  return Whole({.source = OverSyncWorkers(), .trajectories_per_batch = 3});
}
// It has one worker, so that batches come in one order.
absl::StatusOr<std::unique_ptr<Source>> MakeOverAsyncWorker() {
  MultiCollectorOptions options = CountingWorkers();
  options.workers = 1;
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiAsyncCollector::Create(options));
  return Whole({.source = std::move(source), .trajectories_per_batch = 3});
}

INSTANTIATE_TEST_SUITE_P(TrajectorySource, SourceConformanceTest,
                         ::testing::Values(MakePadded, MakeCat,
                                           MakeOverSyncWorkers,
                                           MakeOverAsyncWorker));

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const std::optional<int> worker =
      rill::WorkerMain(argc, argv, {{"fatal", rill::FatalWorker}});
  if (worker.has_value()) return *worker;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
