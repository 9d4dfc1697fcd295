// SPDX-License-Identifier: Apache-2.0
// Rounds of MultiSyncCollector that end before every worker has made a whole
// batch, how workers' batches are joined, and workers whose batches differ.
// Workers are threads; multi_collector_process_test.cc has processes.
//
// A test decides who is slow: such a worker waits in a step, where it stays
// until the collector has told workers to end their batches. The others wait
// with their last step until all slow ones are there.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/arrivals.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_seed.h"
#include "rill/envs/cart_pole.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLanes = 2;
constexpr int64_t kTime = 10;  // Steps of a whole batch.

// Which worker waits before which of its steps. They open once workers can see
// that they are to end their batches.
class Gates {
 public:
  // Before a round: `slow` workers have `done` steps behind them, and wait
  // before step `at` of the round.
  struct Slow {
    int64_t done = 0;
    int64_t at = 0;
  };
  void Close(const std::map<int64_t, Slow>& slow) {
    absl::MutexLock lock(&mutex_);
    closed_.clear();
    for (const auto& [worker, when] : slow) {
      closed_[worker] = when.done + when.at;
    }
    waiting_ = 0;
    is_open_ = false;
  }

  void Open() {
    absl::MutexLock lock(&mutex_);
    is_open_ = true;
  }

  void AwaitOpen() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_open_));
  }

  void AwaitSlow() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Gates::AllWait));
  }

  // A worker calls it before each step.
  void Pass(int64_t worker, int64_t step) {
    absl::MutexLock lock(&mutex_);
    const auto found = closed_.find(worker);
    if (found == closed_.end()) {
      mutex_.Await(absl::Condition(this, &Gates::AllWait));
    } else if (found->second == step) {
      ++waiting_;
      mutex_.Await(absl::Condition(&is_open_));
    }
  }

 private:
  bool AllWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_open_ || waiting_ == static_cast<int64_t>(closed_.size());
  }

  absl::Mutex mutex_;
  std::map<int64_t, int64_t> closed_ ABSL_GUARDED_BY(mutex_);  // To a step.
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
  ScopedFaultHook hook_{[this](absl::string_view point, absl::string_view) {
    if (point == "interruptor.interrupted") Open();
    return absl::OkStatus();
  }};
};

MultiCollectorOptions CartPoles(
    int64_t workers, Gates* gates = nullptr,
    std::optional<double> preemptive_threshold = std::nullopt) {
  MultiCollectorOptions options;
  options.preemptive_threshold = preemptive_threshold;
  options.producer = 0;
  options.workers = workers;
  options.worker =
      [gates](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
    if (gates == nullptr) return parts;
    parts.env = std::make_unique<HookedEnv>(
        std::move(parts.env), [gates, worker = context.worker](int64_t step) {
          gates->Pass(worker, step);
        });
    return parts;
  };
  options.frames_per_batch = workers * kLanes * kTime;
  options.seed = 5;
  return options;
}

// The steps that worker `w` makes in all, [kLanes, steps].
TensorDict Alone(int64_t w, int64_t steps) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCartPole({.lanes = kLanes});
  options.frames_per_batch = kLanes * steps;
  options.seed = WorkerSeed(5, w);
  options.producer = w;
  auto collector = *SyncCollector::Create(std::move(options));
  return *collector->Next()->Clone();
}

TensorDict Steps(const TensorDict& batch, int64_t begin, int64_t end) {
  return *batch.Slice(1, begin, end);
}

template <typename T>
std::vector<T> Values(const TensorDict& batch, absl::string_view key) {
  const Tensor leaf = *batch.Get(key)->Contiguous();
  const auto values = *leaf.Flat<T>();
  return std::vector<T>(values.begin(), values.end());
}

struct CheckedArrivals : Arrivals {
  using Arrivals::Arrivals;

  // Steps of a worker so far.
  int64_t steps(int64_t w) {
    int64_t sum = 0;
    for (const TensorDict& batch : batches[w]) sum += batch.batch_shape()[1];
    return sum;
  }

  // Whether the rows of every worker, one batch behind the other, are those
  // that it makes alone.
  void ExpectRowsOfTheirSeeds() {
    for (int64_t w = 0; w < workers; ++w) {
      const TensorDict want = Alone(w, std::max<int64_t>(1, steps(w)));
      int64_t at = 0;
      for (size_t i = 0; i < batches[w].size(); ++i) {
        const int64_t end = at + batches[w][i].batch_shape()[1];
        EXPECT_THAT(batches[w][i], BitEqualTo(Steps(want, at, end)))
            << "worker " << w << ", batch " << i;
        EXPECT_EQ(numbers[w][i], static_cast<int64_t>(i) + 1);
        at = end;
      }
    }
    for (const WriteInfo& info : infos) {
      EXPECT_EQ(info.first_lane, info.producer * kLanes);
    }
  }
};

// The rows of worker `w` in a batch that Next padded, [kLanes, kTime].
TensorDict PartOf(const TensorDict& batch, CatResults cat, int64_t w) {
  return cat == CatResults::kStack
             ? *batch.Index(w)
             : *batch.Slice(0, w * kLanes, (w + 1) * kLanes);
}

class PaddedTest : public ::testing::TestWithParam<CatResults> {};

TEST_P(PaddedTest, E6_MissingFramesHaveNoTrajectoryAndAreMasked) {
  Gates gates;
  // Two of three.
  MultiCollectorOptions options = CartPoles(3, &gates, 0.5);
  options.cat_results = GetParam();
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  // The second round overwrites what padded the first one.
  const std::vector<std::pair<int64_t, int64_t>> slow_ones = {{0, 5}, {2, 8}};
  std::vector<int64_t> done(3);
  for (const auto& [slow, steps] : slow_ones) {
    gates.Close({{slow, {.done = done[slow], .at = steps - 1}}});
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    EXPECT_EQ(batch.batch_shape(), GetParam() == CatResults::kStack
                                       ? Shape({3, kLanes, kTime})
                                       : Shape({3 * kLanes, kTime}));
    for (int64_t w = 0; w < 3; ++w) {
      const int64_t made = w == slow ? steps : kTime;
      const TensorDict want =
          Steps(Alone(w, done[w] + made), done[w], done[w] + made);
      TensorDict part = PartOf(batch, GetParam(), w);
      EXPECT_THAT(Values<bool>(Steps(part, 0, made), "collector/mask"),
                  Each(true));
      const TensorDict missing = Steps(part, made, kTime);
      EXPECT_THAT(Values<bool>(missing, "collector/mask"), Each(false));
      EXPECT_THAT(Values<int64_t>(missing, "collector/traj_ids"), Each(-1));
      EXPECT_THAT(Values<float>(missing, "next/observation"), Each(0));
      EXPECT_THAT(Values<int64_t>(missing, "action"), Each(0));
      RILL_ASSERT_OK(part.Delete("collector/mask"));
      EXPECT_THAT(Steps(part, 0, made), BitEqualTo(want)) << "worker " << w;
      done[w] += made;
    }
    EXPECT_EQ(collector->frames(), kLanes * (done[0] + done[1] + done[2]));
  }
}

INSTANTIATE_TEST_SUITE_P(Padded, PaddedTest,
                         ::testing::Values(CatResults::kLanes,
                                           CatResults::kStack),
                         [](const auto& info) {
                           return info.param == CatResults::kStack ? "Stack"
                                                                   : "Lanes";
                         });

TEST(PreemptionTest, E6_AlongTimeMissingFramesAreDropped) {
  Gates gates;
  MultiCollectorOptions options = CartPoles(3, &gates, 0.5);
  options.cat_results = CatResults::kTime;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  gates.Close({{1, {.at = 3}}});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  RILL_EXPECT_OK(collector->spec().CheckLayout("Next", batch));
  EXPECT_EQ(batch.batch_shape(), Shape({kLanes, kTime + 4 + kTime}));
  EXPECT_THAT(Steps(batch, 0, 10), BitEqualTo(Alone(0, 10)));
  EXPECT_THAT(Steps(batch, 10, 14), BitEqualTo(Alone(1, 4)));
  EXPECT_THAT(Steps(batch, 14, 24), BitEqualTo(Alone(2, 10)));
  // Users take elements of a leaf as they lie.
  RILL_EXPECT_OK(batch.Flat<int64_t>("action").status());
  EXPECT_EQ(collector->frames(), kLanes * 24);
}

TEST(PreemptionTest, ASinkGetsTheRowsThatExistAndEpisodesGoOn) {
  Gates gates;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(CartPoles(2, &gates, 0.5)));
  CheckedArrivals got(2);
  const std::vector<std::pair<int64_t, int64_t>> slow_ones = {
      {0, 1}, {1, 4}, {0, 9}, {1, 1}};
  for (const auto& [slow, steps] : slow_ones) {
    gates.Close({{slow, {.done = got.steps(slow), .at = steps - 1}}});
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    EXPECT_EQ(got.batches[slow].back().batch_shape(), Shape({kLanes, steps}));
    EXPECT_EQ(got.batches[1 - slow].back().batch_shape(),
              Shape({kLanes, kTime}));
  }
  got.ExpectRowsOfTheirSeeds();
  EXPECT_THAT(got.cuts, IsEmpty());
  EXPECT_EQ(collector->frames(), kLanes * (got.steps(0) + got.steps(1)));
}

TEST(PreemptionTest, ASinkThatTakesItsTimeHoldsNobodyUp) {
  Gates gates;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      MultiSyncCollector::Create(CartPoles(2, &gates, 0.5)));
  gates.Close({{1, {.at = 3}}});
  std::vector<int64_t> steps;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo&) {
    gates.AwaitOpen();
    steps.push_back(batch.batch_shape()[1]);
    return absl::OkStatus();
  });
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(steps, ElementsAre(kTime, 4));
}

// 0.28 * 25 is a little more than 7 in floating point: an eighth worker would
// never come.
TEST(PreemptionTest, TheShareIsRoundedUpToWorkers) {
  struct Case {
    double share;
    int64_t workers;
    int64_t enough;
  };
  for (const Case& one : {Case{.share = 0.28, .workers = 25, .enough = 7},
                          Case{.share = 0.31, .workers = 10, .enough = 4},
                          Case{.share = 1e-6, .workers = 3, .enough = 1}}) {
    Gates gates;
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto collector,
        MultiSyncCollector::Create(CartPoles(one.workers, &gates, one.share)));
    std::map<int64_t, Gates::Slow> slow;
    for (int64_t w = 0; w < one.workers - one.enough; ++w) {
      slow[w] = {.at = 3};
    }
    gates.Close(slow);
    CheckedArrivals got(one.workers);
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    for (int64_t w = 0; w < one.workers; ++w) {
      EXPECT_EQ(got.steps(w), slow.contains(w) ? 4 : kTime) << one.share;
    }
  }
}

TEST(PreemptionTest, InterruptEndsTheBatchesAtHandAndNoLaterOne) {
  Gates gates;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, MultiSyncCollector::Create(
                                                      CartPoles(2, &gates, 1)));
  CheckedArrivals got(2);
  gates.Close({{0, {.at = 2}}, {1, {.at = 7}}});
  std::thread user([&] {
    gates.AwaitSlow();
    RILL_EXPECT_OK(collector->Interrupt());
  });
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  user.join();
  EXPECT_EQ(got.steps(0), 3);
  EXPECT_EQ(got.steps(1), 8);
  RILL_EXPECT_OK(collector->Interrupt());  // That round is over.
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_EQ(got.steps(0), 3 + kTime);
  EXPECT_EQ(got.steps(1), 8 + kTime);
  got.ExpectRowsOfTheirSeeds();
}

TEST(PreemptionTest, InterruptNeedsTheOption) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(CartPoles(2)));
  EXPECT_THAT(collector->Interrupt(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("preemptive_threshold")));
}

TEST(PreemptionTest, ShortBatchesThatASinkRefusedAreInTheState) {
  Gates gates;
  MultiCollectorOptions options = CartPoles(3, &gates, 0.3);
  RILL_ASSERT_OK_AND_ASSIGN(const auto first,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            MultiSyncCollector::Create(options));
  CheckedArrivals got(3);
  gates.Close({{1, {.at = 5}}, {2, {.at = 6}}});
  got.refused = 1;
  EXPECT_THAT(first->CollectInto(got.sink),
              StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(second->LoadState(state));
  got.refused.reset();
  RILL_ASSERT_OK(second->CollectInto(got.sink));  // The rest of that round.
  EXPECT_EQ(got.steps(0), kTime);
  EXPECT_EQ(got.steps(1), 6);
  EXPECT_EQ(got.steps(2), 7);
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(second->CollectInto(got.sink));
  got.ExpectRowsOfTheirSeeds();
  EXPECT_THAT(got.cuts, IsEmpty());

  // Without the option all batches are whole.
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(CartPoles(3)));
  EXPECT_THAT(whole->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("got a batch of shape [2, 6]")));
}

TEST(PreemptionTest, ABatchThatWasLeftOverIsPartOfTheNextOne) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(CartPoles(2)));
  CheckedArrivals got(2);
  got.refused = 1;
  EXPECT_FALSE(collector->CollectInto(got.sink).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(PartOf(batch, CatResults::kLanes, 0),
              BitEqualTo(Steps(Alone(0, 20), 10, 20)));
  EXPECT_THAT(PartOf(batch, CatResults::kLanes, 1), BitEqualTo(Alone(1, 10)));
  EXPECT_EQ(collector->frames(), kLanes * 30);
}

// Property: for any slow workers and any share that is enough, the rows of a
// worker are those of a SyncCollector of its seed, each once and in order.
TEST(PreemptionTest, RandomRoundsLoseNoStepAndMakeNoneTwice) {
  constexpr int kRuns = 12;
  const Rng rng(3);
  int64_t short_batches = 0;
  for (int run = 0; run < kRuns; ++run) {
    uint32_t draw = 0;
    const auto random = [&](int64_t begin, int64_t end) {
      return begin + rng.UniformInt(static_cast<uint64_t>(run), draw++,
                                    /*bound=*/end - begin);
    };
    const int64_t workers = random(1, 6);
    const int64_t enough = random(1, workers + 1);
    Gates gates;
    MultiCollectorOptions options = CartPoles(workers, &gates);
    options.preemptive_threshold =
        static_cast<double>(enough) / static_cast<double>(workers);
    options.frames_per_batch = 0;
    for (int64_t w = 0; w < workers; ++w) {
      options.frames_per_worker.push_back(kLanes * random(3, kTime + 1));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                              MultiSyncCollector::Create(options));
    CheckedArrivals got(workers);
    for (int round = 0; round < 8; ++round) {
      std::map<int64_t, Gates::Slow> slow;
      for (int64_t w = 0; w < workers - enough; ++w) {
        // Those that are not enough, or fewer: the rest runs as it may.
        if (random(0, 3) == 0) continue;
        slow[(w + round) % workers] = {.at = random(0, 2)};
      }
      for (auto& [w, when] : slow) when.done = got.steps(w);
      gates.Close(slow);
      RILL_ASSERT_OK(collector->CollectInto(got.sink));
    }
    got.ExpectRowsOfTheirSeeds();
    EXPECT_THAT(got.cuts, IsEmpty());
    int64_t steps = 0;
    for (int64_t w = 0; w < workers; ++w) {
      steps += got.steps(w);
      for (const TensorDict& batch : got.batches[w]) {
        const int64_t frames = batch.batch_shape().num_elements();
        short_batches += frames < options.frames_per_worker[w] ? 1 : 0;
      }
    }
    EXPECT_EQ(collector->frames(), kLanes * steps);
  }
  EXPECT_GT(short_batches, 0);
}

TEST(CatResultsTest, WholeBatchesAreStackedOrOneBehindTheOther) {
  MultiCollectorOptions options = CartPoles(3);
  options.cat_results = CatResults::kStack;
  RILL_ASSERT_OK_AND_ASSIGN(const auto stacked,
                            MultiSyncCollector::Create(options));
  options.cat_results = CatResults::kTime;
  RILL_ASSERT_OK_AND_ASSIGN(const auto along_time,
                            MultiSyncCollector::Create(options));
  for (int64_t i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict stack, stacked->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict time, along_time->Next());
    EXPECT_EQ(stack.batch_shape(), Shape({3, kLanes, kTime}));
    EXPECT_EQ(time.batch_shape(), Shape({kLanes, 3 * kTime}));
    for (int64_t w = 0; w < 3; ++w) {
      const TensorDict want =
          Steps(Alone(w, (i + 1) * kTime), i * kTime, (i + 1) * kTime);
      EXPECT_THAT(*stack.Index(w), BitEqualTo(want));
      EXPECT_THAT(Steps(time, w * kTime, (w + 1) * kTime), BitEqualTo(want));
    }
  }
}

TEST(FramesPerWorkerTest, EachWorkerMakesItsOwnNumber) {
  MultiCollectorOptions options = CartPoles(2);
  options.frames_per_batch = 0;
  options.frames_per_worker = {7, 20};  // 4 steps and 10.
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  EXPECT_EQ(collector->frames_per_batch(), 8 + 20);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({2 * kLanes, 10}));
  const TensorDict rows = PartOf(batch, CatResults::kLanes, 0);
  EXPECT_THAT(Values<bool>(Steps(rows, 0, 4), "collector/mask"), Each(true));
  EXPECT_THAT(Values<bool>(Steps(rows, 4, 10), "collector/mask"), Each(false));
  EXPECT_THAT(Values<int64_t>(Steps(rows, 4, 10), "collector/traj_ids"),
              Each(-1));
  CheckedArrivals got(2);
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  EXPECT_THAT(got.batches[0],
              ElementsAre(BitEqualTo(Steps(Alone(0, 8), 4, 8))));
  EXPECT_THAT(got.batches[1],
              ElementsAre(BitEqualTo(Steps(Alone(1, 20), 10, 20))));
  EXPECT_EQ(collector->frames(), 2 * 28);
}

TEST(FramesPerWorkerTest, MultiAsyncCollectorCountsTheRowsThatCame) {
  MultiCollectorOptions options = CartPoles(2);
  options.frames_per_batch = 0;
  options.frames_per_worker = {7, 20};
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  EXPECT_EQ(collector->frames_per_batch(), 20);
  CheckedArrivals got(2);
  for (int i = 0; i < 12; ++i) RILL_ASSERT_OK(collector->CollectInto(got.sink));
  got.ExpectRowsOfTheirSeeds();
  EXPECT_EQ(collector->frames(), kLanes * (got.steps(0) + got.steps(1)));
}

TEST(PreemptionTest, CreateNamesTheWrongOption) {
  const auto refused =
      [](const std::function<void(MultiCollectorOptions*)>& to) {
        MultiCollectorOptions options = CartPoles(2);
        to(&options);
        return MultiSyncCollector::Create(options).status();
      };
  const auto names = [](absl::string_view option) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(option));
  };
  for (const double share : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THAT(refused([&](auto* o) { o->preemptive_threshold = share; }),
                names("preemptive_threshold"));
  }
  EXPECT_THAT(refused([](auto* o) {
                o->frames_per_worker = {20, 20};
              }),
              names("frames_per_worker: got 40, [20, 20]"));
  EXPECT_THAT(refused([](auto* o) {
                o->frames_per_batch = 0;
                o->frames_per_worker = {20};
              }),
              names("frames_per_worker: got 0, [20]"));
  EXPECT_THAT(refused([](auto* o) {
                o->frames_per_batch = 0;
                o->frames_per_worker = {20, 0};
              }),
              names("frames_per_worker: got 0, [20, 0]"));

  MultiCollectorOptions options = CartPoles(2);
  options.preemptive_threshold = 1;
  EXPECT_THAT(MultiAsyncCollector::Create(options).status(),
              names("preemptive_threshold"));
  options.preemptive_threshold.reset();
  options.cat_results = CatResults::kTime;
  EXPECT_THAT(MultiAsyncCollector::Create(options).status(),
              names("cat_results"));
}

// The option alone changes nothing.
absl::StatusOr<std::unique_ptr<Source>> MakeSource() {
  MultiCollectorOptions options = CartPoles(2);
  options.preemptive_threshold = 1;
  options.cat_results = CatResults::kTime;
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiSyncCollector::Create(options));
  return source;
}

INSTANTIATE_TEST_SUITE_P(Preemptive, SourceConformanceTest,
                         ::testing::Values(MakeSource));

}  // namespace
}  // namespace rill
