// SPDX-License-Identifier: Apache-2.0
// Collectors whose workers are threads; multi_collector_process_test.cc has
// processes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
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
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/episodes/episode_trackers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 2;

absl::StatusOr<WorkerParts> CartPoleWorker(const WorkerContext& /*context*/) {
  WorkerParts parts;
  RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
  return parts;
}

MultiCollectorOptions CartPoles(int64_t workers, int64_t frames) {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = workers;
  options.worker = CartPoleWorker;
  options.frames_per_batch = frames;
  options.seed = 5;
  return options;
}

// Steps the same as worker `w` of CartPoles.
std::unique_ptr<SyncCollector> Alone(int64_t w, int64_t frames) {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCartPole({.lanes = kLanes});
  options.frames_per_batch = frames;
  options.seed = WorkerSeed(5, w);
  options.producer = w;
  return *SyncCollector::Create(std::move(options));
}

// Worker 1 fails at its step number 5, the others never.
MultiCollectorOptions OneFails() {
  MultiCollectorOptions options;
  options.producer = 0;
  options.workers = 3;
  options.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCountingEnv({.lanes = kLanes}));
    if (context.worker != 1) return parts;
    parts.env = std::make_unique<FaultyEnv>(std::move(parts.env),
                                            FaultyEnv::Options{.fail_step = 5});
    return parts;
  };
  options.frames_per_batch = 24;  // 4 steps of each worker.
  return options;
}

TEST(MultiSyncCollectorTest, Example) {
  MultiCollectorOptions options;
  options.workers = 2;
  options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 8}));
    return parts;
  };
  options.frames_per_batch = 1024;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            MultiSyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({16, 64}));
}

// Two workers of CartPoles, of which `worker` hangs in its third step.
MultiCollectorOptions OneThatHangs(int64_t worker,
                                   const absl::Notification* may_go_on) {
  MultiCollectorOptions options = CartPoles(2, 16);
  options.worker =
      [worker,
       may_go_on](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    RILL_ASSIGN_OR_RETURN(WorkerParts parts, CartPoleWorker(context));
    if (context.worker == worker) {
      parts.env = std::make_unique<HookedEnv>(
          std::move(parts.env), [may_go_on](int64_t step) {
            if (step == 2) may_go_on->WaitForNotification();
          });
    }
    return parts;
  };
  return options;
}

// A worker that hangs ends no call but by is_interrupted.
template <typename Collector>
void ExpectThatAnInterruptLosesNothing() {
  absl::Notification may_go_on;
  bool is_interrupted = false;
  MultiCollectorOptions options = OneThatHangs(0, &may_go_on);
  options.is_interrupted = [&] { return is_interrupted; };
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            Collector::Create(std::move(options)));
  Arrivals arrivals(2);
  is_interrupted = true;
  for (int i = 0; i < 2; ++i) {
    // An asynchronous one has the batches of the other worker first.
    absl::Status status;
    while (status.ok()) status = collector->CollectInto(arrivals.sink);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  }
  is_interrupted = false;
  may_go_on.Notify();
  while (arrivals.batches.size() < 2) {
    RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  }
  for (int64_t worker = 0; worker < 2; ++worker) {
    const auto alone = Alone(worker, 8);
    for (const TensorDict& batch : arrivals.batches[worker]) {
      EXPECT_THAT(batch, BitEqualTo(*alone->Next()));
    }
  }
  EXPECT_THAT(arrivals.cuts, ElementsAre());
}

TEST(MultiSyncCollectorTest, AnInterruptEndsAWaitAndLosesNothing) {
  ExpectThatAnInterruptLosesNothing<MultiSyncCollector>();
}

// Worker 0's batch crosses total_frames while worker 1 hangs.
TEST(MultiSyncCollectorTest, ARoundThatCrossesTheTotalIsMadeWhole) {
  absl::Notification may_go_on;
  bool is_interrupted = true;
  MultiCollectorOptions options = OneThatHangs(1, &may_go_on);
  options.total_frames = 8;
  options.is_interrupted = [&] { return is_interrupted; };
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(std::move(options)));
  Arrivals arrivals(2);
  while (!collector->is_in_round()) {
    ASSERT_EQ(collector->CollectInto(arrivals.sink).code(),
              absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(collector->frames(), 8);
  is_interrupted = false;
  may_go_on.Notify();
  RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  EXPECT_FALSE(collector->is_in_round());
  EXPECT_EQ(collector->frames(), 16);
  EXPECT_THAT(arrivals.batches[1][0], BitEqualTo(*Alone(1, 8)->Next()));
  EXPECT_EQ(collector->CollectInto(arrivals.sink).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(MultiAsyncCollectorTest, AnInterruptEndsAWaitAndLosesNothing) {
  ExpectThatAnInterruptLosesNothing<MultiAsyncCollector>();
}

TEST(MultiAsyncCollectorTest, Example) {
  MultiCollectorOptions options;
  options.workers = 2;
  options.worker = [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 8}));
    return parts;
  };
  options.frames_per_batch = 1024;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            MultiAsyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({8, 64}));
  EXPECT_EQ(batch.dim_names(), (std::vector<std::string>{"lanes", "time"}));
}

TEST(MultiSyncCollectorTest, E2_WorkersGiveWhatCollectorsOfTheirSeedsGive) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto joined,
                            MultiSyncCollector::Create(CartPoles(3, 60)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto written,
                            MultiSyncCollector::Create(CartPoles(3, 60)));
  std::vector<std::unique_ptr<SyncCollector>> alone;
  for (int64_t w = 0; w < 3; ++w) alone.push_back(Alone(w, 20));
  Arrivals arrivals(3);
  for (int i = 0; i < 5; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, joined->Next());
    RILL_ASSERT_OK(written->CollectInto(arrivals.sink));
    for (int64_t w = 0; w < 3; ++w) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, alone[w]->Next());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                                batch.Slice(0, w * kLanes, (w + 1) * kLanes));
      EXPECT_THAT(part, BitEqualTo(want));
      EXPECT_THAT(arrivals.batches[w][i], BitEqualTo(want));
      const WriteInfo& info = arrivals.infos[i * 3 + w];
      EXPECT_EQ(info.producer, w);
      EXPECT_EQ(info.first_lane, w * kLanes);
      EXPECT_EQ(info.sequence, i + 1);
    }
  }
  EXPECT_EQ(joined->frames(), 300);
  EXPECT_EQ(written->frames(), 300);
}

TEST(MultiSyncCollectorTest, WorkersHaveTheOptionsOfSyncCollector) {
  MultiCollectorOptions options = CartPoles(1, 20);
  options.set_truncated = true;
  options.reset_at_each_batch = true;
  options.init_random_frames = 20;
  options.max_frames_per_traj = 7;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  SyncCollector::Options alone_options;
  alone_options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(alone_options.env, MakeCartPole({.lanes = kLanes}));
  alone_options.frames_per_batch = 20;
  alone_options.seed = 5;
  alone_options.set_truncated = true;
  alone_options.reset_at_each_batch = true;
  alone_options.init_random_frames = 20;
  alone_options.max_frames_per_traj = 7;
  RILL_ASSERT_OK_AND_ASSIGN(const auto alone,
                            SyncCollector::Create(std::move(alone_options)));
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, alone->Next());
    EXPECT_THAT(collector->Next(), IsOkAndHolds(BitEqualTo(want)));
  }
}

// Worker 1 fails once, before its second batch, which is as it would have been.
TEST(MultiSyncCollectorTest, AWorkersHookIsCalledBeforeEachBatch) {
  MultiCollectorOptions options = CartPoles(2, 40);
  int calls[2] = {0, 0};
  options.worker =
      [&](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    RILL_ASSIGN_OR_RETURN(WorkerParts parts, CartPoleWorker(context));
    parts.before_batch = [&calls = calls[context.worker],
                          worker = context.worker]() -> absl::Status {
      if (++calls == 2 && worker == 1) return absl::DataLossError("no map");
      return absl::OkStatus();
    };
    return parts;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain,
                            MultiSyncCollector::Create(CartPoles(2, 40)));
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      EXPECT_THAT(collector->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                              HasSubstr("worker 1: no map")));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Next());
    EXPECT_THAT(collector->Next(), IsOkAndHolds(BitEqualTo(want)));
  }
  EXPECT_THAT(calls, ElementsAre(3, 4));
}

TEST(MultiAsyncCollectorTest, EachWorkersBatchesComeInItsOrder) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(CartPoles(3, 60)));
  Arrivals arrivals(3);
  for (int i = 0; i < 30; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  }
  for (int64_t w = 0; w < 3; ++w) {
    const auto alone = Alone(w, 20);
    for (const TensorDict& got : arrivals.batches[w]) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, alone->Next());
      EXPECT_THAT(got, BitEqualTo(want));
    }
  }
  EXPECT_EQ(collector->frames(), 600);
}

TEST(MultiAsyncCollectorTest, E12_APauseHoldsTheWorkersAndLosesNoFrame) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(CartPoles(2, 40)));
  Arrivals arrivals(2);
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
    if (i % 4 != 3) continue;
    RILL_ASSERT_OK(collector->Pause());
    const absl::Duration before = collector->times().env;
    RILL_ASSERT_OK(collector->Pause());  // Nobody works meanwhile.
    EXPECT_EQ(collector->times().env, before);
  }
  for (int64_t w = 0; w < 2; ++w) {
    const auto alone = Alone(w, 20);
    for (const TensorDict& got : arrivals.batches[w]) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, alone->Next());
      EXPECT_THAT(got, BitEqualTo(want));
    }
  }
}

TEST(MultiAsyncCollectorTest, E9_ABatchThatWasHandedOutDoesNotChange) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(CartPoles(2, 40)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, batch.Clone());
  for (int i = 0; i < 10; ++i) RILL_ASSERT_OK(collector->Next().status());
  EXPECT_THAT(batch, BitEqualTo(before));
}

TEST(MultiSyncCollectorTest, E4_TrajectoriesOfAllWorkersAndBatchesAreApart) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(CartPoles(3, 300)));
  std::map<int64_t, int64_t> lane_of;
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const auto ids,
                              batch.Flat<int64_t>("collector/traj_ids"));
    const int64_t time = batch.batch_shape()[1];
    for (size_t row = 0; row < ids.size(); ++row) {
      const int64_t lane = static_cast<int64_t>(row) / time;
      EXPECT_EQ(lane_of.try_emplace(ids[row], lane).first->second, lane);
    }
  }
  EXPECT_GT(lane_of.size(), 12);
}

TEST(MultiSyncCollectorTest, E1_SharesAreRoundedUpAndEndAfterTotalFrames) {
  MultiCollectorOptions options = CartPoles(3, 50);
  options.total_frames = 100;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(std::move(options)));
  EXPECT_EQ(collector->frames_per_batch(), 3 * 18);  // 17 each, in two lanes.
  RILL_ASSERT_OK(collector->Next().status());
  RILL_ASSERT_OK(collector->Next().status());
  EXPECT_EQ(collector->frames(), 108);
  EXPECT_THAT(collector->Next(), StatusIs(absl::StatusCode::kOutOfRange,
                                          HasSubstr("total_frames = 100")));
}

TEST(MultiSyncCollectorTest, AnErrorOfOneWorkerLosesNoRowOfAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(OneFails()));
  Arrivals arrivals(3);
  RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  EXPECT_THAT(
      collector->CollectInto(arrivals.sink),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("worker 1: "), HasSubstr("simulator is gone"))));
  RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  for (int64_t w = 0; w < 3; ++w) {
    std::vector<int64_t> numbers;
    for (const WriteInfo& info : arrivals.infos) {
      if (info.producer == w) numbers.push_back(info.sequence);
    }
    EXPECT_THAT(numbers, ElementsAre(1, 2, 3)) << w;
  }
  // The lanes of worker 1 began anew.
  EXPECT_THAT(arrivals.cuts, ElementsAre(std::make_pair(
                                 1, LaneRange{.first = 2, .count = 2})));
  EXPECT_EQ(collector->frames(), 72);
}

TEST(MultiSyncCollectorTest, AnErrorInNextLosesNoRowOfAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto failing,
                            MultiSyncCollector::Create(OneFails()));
  MultiCollectorOptions options = OneFails();
  options.worker =
      [](const WorkerContext& /*context*/) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCountingEnv({.lanes = kLanes}));
    return parts;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto whole,
                            MultiSyncCollector::Create(std::move(options)));
  for (int i = 0; i < 4; ++i) {
    if (i == 1) {
      EXPECT_FALSE(failing->Next().ok());
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, failing->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, whole->Next());
    for (const int64_t w : {0, 2}) {
      EXPECT_THAT(*got.Slice(0, w * kLanes, (w + 1) * kLanes),
                  BitEqualTo(*want.Slice(0, w * kLanes, (w + 1) * kLanes)));
    }
  }
  EXPECT_EQ(failing->frames(), 96);
}

TEST(MultiCollectorTest, WhatAWorkersFunctionSaysComesBack) {
  MultiCollectorOptions options = CartPoles(2, 40);
  options.argument = "a map";
  options.worker = [](const WorkerContext& context) {
    absl::Status error = absl::NotFoundError(absl::StrCat(
        "no file \"", context.argument, "\" of ", context.workers));
    error.SetPayload("path", {});
    return absl::StatusOr<WorkerParts>(error);
  };
  const absl::Status error = MultiSyncCollector::Create(options).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kNotFound,
                              AllOf(HasSubstr("MultiSyncCollector: worker "),
                                    HasSubstr("no file \"a map\" of 2"))));
  EXPECT_TRUE(error.GetPayload("path").has_value());
}

TEST(MultiCollectorTest, WorkersOfDifferentKindsAreRefused) {
  MultiCollectorOptions options = CartPoles(2, 40);
  options.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env,
                          MakeCartPole({.lanes = 1 + context.worker}));
    return parts;
  };
  EXPECT_THAT(MultiAsyncCollector::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AnyOf(HasSubstr("lanes: got 2, want the first "
                                       "worker's, 1"),
                             HasSubstr("lanes: got 1, want the first "
                                       "worker's, 2"))));

  options.worker =
      [](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({}));
    if (context.worker == 1) {
      RILL_ASSIGN_OR_RETURN(parts.transforms.emplace_back(),
                            InitTracker::Create({}));
    }
    return parts;
  };
  const absl::Status other = MultiAsyncCollector::Create(options).status();
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("rows differ from the first worker's: "
                                        "leaf \"is_init\": got ")));
  EXPECT_LT(other.message().size(), 200u) << other;
}

TEST(MultiCollectorTest, CreateNamesTheWrongOption) {
  const auto refused = [](void (*change)(MultiCollectorOptions*)) {
    MultiCollectorOptions options = CartPoles(2, 40);
    change(&options);
    return MultiSyncCollector::Create(options).status();
  };
  const auto names = [](absl::string_view option) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(option));
  };
  EXPECT_THAT(refused([](auto* o) { o->workers = 0; }), names("workers"));
  EXPECT_THAT(refused([](auto* o) { o->worker = nullptr; }), names("none"));
  EXPECT_THAT(refused([](auto* o) { o->worker_name = "a"; }), names("both"));
  EXPECT_THAT(refused([](auto* o) { o->frames_per_batch = 0; }),
              names("frames_per_batch"));
  EXPECT_THAT(refused([](auto* o) { o->total_frames = 0; }),
              names("total_frames"));
  EXPECT_THAT(refused([](auto* o) { o->init_random_frames = -1; }),
              names("init_random_frames"));
  EXPECT_THAT(refused([](auto* o) { o->max_staleness = 1; }),
              names("max_staleness"));
  EXPECT_THAT(refused([](auto* o) { o->max_restarts = -1; }),
              names("max_restarts"));
  EXPECT_THAT(refused([](auto* o) { o->producer = 1 << 23; }),
              names("producer"));
  EXPECT_THAT(refused([](auto* o) {
                o->max_restarts = std::numeric_limits<int64_t>::max();
              }),
              names("max_restarts"));
  EXPECT_THAT(refused([](auto* o) { o->first_lane = -1; }),
              names("first_lane"));
}

// A thread cannot be killed, but the caller gets an error.
TEST(MultiCollectorTest, AThreadThatTakesTooLongIsDeadlineExceeded) {
  absl::Notification go_on;
  MultiCollectorOptions options = CartPoles(1, 40);
  options.worker =
      [&](const WorkerContext& /*context*/) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
    parts.env = std::make_unique<HookedEnv>(
        std::move(parts.env),
        [&](int64_t /*step*/) { go_on.WaitForNotification(); });
    return parts;
  };
  options.batch_timeout = absl::Milliseconds(1);
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(options));
  EXPECT_THAT(collector->Next(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          HasSubstr("batch_timeout = 1ms")));
  go_on.Notify();
  RILL_EXPECT_OK(collector->Next().status());
}

TEST(MultiSyncCollectorTest, ASaveWhoseAnswersCannotBeWaitedForIsAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(CartPoles(2, 40)));
  RILL_ASSERT_OK(collector->Next().status());
  absl::Status status;
  {
    // The workers, which are threads here, poll one socket each.
    ScopedFaultHook hook(
        [](absl::string_view point, absl::string_view sockets) {
          return point == "process.poll" && sockets == "2"
                     ? absl::InternalError("planted")
                     : absl::OkStatus();
        });
    status = collector->SaveState().status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("poll of 2 sockets")));
  // No later command takes the answers for its own.
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("its answer could not be waited for")));
}

TEST(MultiAsyncCollectorTest, AStateGoesOnWithTheSameBatchesOfEachWorker) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto first,
                            MultiAsyncCollector::Create(CartPoles(2, 40)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            MultiAsyncCollector::Create(CartPoles(2, 40)));
  Arrivals want(2);
  Arrivals got(2);
  for (int i = 0; i < 5; ++i) RILL_ASSERT_OK(first->CollectInto(want.sink));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(second->Next().status());
  RILL_ASSERT_OK(second->LoadState(state));
  const auto before = want.batches;
  for (int i = 0; i < 10; ++i) {
    RILL_ASSERT_OK(first->CollectInto(want.sink));
    RILL_ASSERT_OK(second->CollectInto(got.sink));
  }
  for (const auto& [worker, batches] : got.batches) {
    const size_t start = before.count(worker) ? before.at(worker).size() : 0;
    const size_t both =
        std::min(batches.size(), want.batches[worker].size() - start);
    for (size_t i = 0; i < both; ++i) {
      EXPECT_THAT(batches[i], BitEqualTo(want.batches[worker][start + i]));
    }
  }
}

// Three batches are made, and one of them is delivered, before the pause. The
// loaded collector makes the last one of this test anew.
TEST(MultiAsyncCollectorTest, BatchesThatWereHeldComeWithTheirCuts) {
  absl::Notification third;
  MultiCollectorOptions options = CartPoles(1, 20);
  options.reset_at_each_batch = true;
  RILL_ASSERT_OK_AND_ASSIGN(const auto second,
                            MultiAsyncCollector::Create(options));
  options.worker =
      [&](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    RILL_ASSIGN_OR_RETURN(WorkerParts parts, CartPoleWorker(context));
    parts.before_batch = [&third, batches = 0]() mutable {
      if (++batches == 3) third.Notify();
      return absl::OkStatus();
    };
    return parts;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto first,
                            MultiAsyncCollector::Create(options));
  Arrivals want(1);
  RILL_ASSERT_OK(first->CollectInto(want.sink));
  third.WaitForNotification();
  RILL_ASSERT_OK(first->Pause());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(second->LoadState(state));
  Arrivals got(1);
  for (int i = 1; i <= 3; ++i) {
    RILL_ASSERT_OK(first->CollectInto(want.sink));
    RILL_ASSERT_OK(second->CollectInto(got.sink));
    const std::vector<std::pair<int64_t, LaneRange>> cuts(
        i, {0, {.first = 0, .count = kLanes}});
    EXPECT_EQ(want.cuts, cuts);
    EXPECT_EQ(got.cuts, cuts);
    EXPECT_EQ(want.infos[i].sequence, i + 1);
    EXPECT_EQ(got.infos[i - 1].sequence, i + 1);
    EXPECT_THAT(got.batches[0][i - 1], BitEqualTo(want.batches[0][i]));
  }
}

// A worker that fails cuts at once, with no batch behind the cut. Its second
// batch fails, and Pause is sent when it has begun.
TEST(MultiAsyncCollectorTest, ACutThatWasHeldAloneComes) {
  absl::Notification begun;
  absl::Notification go_on;
  MultiCollectorOptions options;
  options.producer = 0;
  options.frames_per_batch = 4 * kLanes;
  options.worker =
      [&](const WorkerContext& /*context*/) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCountingEnv({.lanes = kLanes}));
    parts.env = std::make_unique<FaultyEnv>(std::move(parts.env),
                                            FaultyEnv::Options{.fail_step = 5});
    parts.before_batch = [&begun, &go_on, batches = 0]() mutable {
      if (++batches == 2) {
        begun.Notify();
        go_on.WaitForNotification();
      }
      return absl::OkStatus();
    };
    return parts;
  };
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  Arrivals arrivals(1);
  RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
  begun.WaitForNotification();
  go_on.Notify();
  EXPECT_THAT(collector->Pause(), StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK(collector->Pause());
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(arrivals.sink));
    EXPECT_THAT(arrivals.cuts, ElementsAre(std::make_pair(
                                   0, LaneRange{.first = 0, .count = kLanes})));
  }
}

TEST(MultiCollectorTest, AStateOfOtherWorkersSaysHowManyThereWere) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto three,
                            MultiSyncCollector::Create(CartPoles(3, 60)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto two,
                            MultiSyncCollector::Create(CartPoles(2, 40)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, three->SaveState());
  EXPECT_THAT(two->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("workers: got the state of 3, want of 2")));
}

// The state's number of restarts has worker 0 begin anew before worker 1
// refuses.
TEST(MultiCollectorTest, ALoadThatFailsLeavesProducersAndRestarts) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(CartPoles(2, 40)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain,
                            MultiSyncCollector::Create(CartPoles(2, 40)));
  Arrivals got(2);
  Arrivals want(2);
  RILL_ASSERT_OK(collector->CollectInto(got.sink));
  RILL_ASSERT_OK(plain->CollectInto(want.sink));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, collector->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict bad, before.Clone());
  bad.Find("restarts")->data<int64_t>()[0] = 1;
  RILL_ASSERT_OK(bad.Delete("worker/1"));
  RILL_ASSERT_OK(bad.Set("worker/1", TensorDict()));
  EXPECT_THAT(
      collector->LoadState(bad),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("worker 1")));
  EXPECT_THAT(collector->SaveState(), IsOkAndHolds(BitEqualTo(before)));
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(got.sink));
    RILL_ASSERT_OK(plain->CollectInto(want.sink));
  }
  for (int64_t w = 0; w < 2; ++w) {
    ASSERT_EQ(got.batches[w].size(), 3);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_THAT(got.batches[w][i], BitEqualTo(want.batches[w][i]));
    }
  }
  EXPECT_THAT(got.cuts, ElementsAre());
}

// Counts for threads that wait.
class Count {
 public:
  void Add() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    ++count_;
  }
  void WaitFor(int64_t count) const ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return count_ >= count;
    };
    const absl::MutexLock lock(&mutex_, absl::Condition(&reached));
  }

 private:
  mutable absl::Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Pushes left where the weight is negative. All of its weights must be equal.
class WeightPolicy final : public Policy {
 public:
  // Notifies `acts` of each call, which must outlive this.
  explicit WeightPolicy(WeightStore::Reader* weights, Count* acts = nullptr)
      : weights_(weights), acts_(acts) {}
  absl::StatusOr<int64_t> Act(const TensorDict& /*root*/,
                              const ActContext& /*context*/,
                              TensorDict* step) override {
    const WeightStore::Snapshot latest = weights_->Latest();
    RILL_ASSIGN_OR_RETURN(const auto values, latest.weights.Flat<float>("w"));
    for (const float value : values) {
      if (value != static_cast<float>(latest.version)) {
        return absl::InternalError("a torn snapshot");
      }
    }
    RILL_ASSIGN_OR_RETURN(const auto actions, step->Flat<int64_t>("action"));
    std::fill(actions.begin(), actions.end(), latest.version % 2);
    if (acts_ != nullptr) acts_->Add();
    return latest.version;
  }

 private:
  WeightStore::Reader* const weights_;
  Count* const acts_;
};

TensorDict Weights(int64_t version) {
  TensorDict weights;
  auto w = *Tensor::Empty(DType::kFloat32, {100});
  std::fill_n(w.data<float>(), 100, static_cast<float>(version));
  RILL_EXPECT_OK(weights.Set("w", w));
  return weights;
}

MultiCollectorOptions WithWeights(const WeightStore& store, int64_t workers,
                                  Count* acts = nullptr) {
  MultiCollectorOptions options = CartPoles(workers, 10 * workers);
  options.weights = &store;
  options.worker =
      [acts](const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = kLanes}));
    parts.policy = std::make_unique<WeightPolicy>(context.weights, acts);
    return parts;
  };
  return options;
}

TEST(MultiSyncCollectorTest, E11_NewWeightsAreInForceFromTheNextBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = Weights(0)}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiSyncCollector::Create(WithWeights(*store, 2)));
  for (int64_t version = 0; version < 5; ++version) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    EXPECT_THAT(*batch.Flat<int64_t>("policy_version"), Each(version));
    EXPECT_THAT(*batch.Flat<int64_t>("action"), Each(version % 2));
    RILL_ASSERT_OK(store->Publish(Weights(version + 1)).status());
  }
}

TEST(MultiAsyncCollectorTest, BatchesThatAreTooOldAreDroppedAndCut) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = Weights(0)}));
  constexpr int64_t kActs = 10 / kLanes;  // Of a batch.
  Count acts;
  MultiCollectorOptions options = WithWeights(*store, 2, &acts);
  options.max_staleness = 1;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            MultiAsyncCollector::Create(options));
  int64_t version = 0;
  int64_t cuts = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& info) {
        EXPECT_GE(info.policy_version, version - 1);
        EXPECT_GE(
            *std::max_element(batch.Flat<int64_t>("policy_version")->begin(),
                              batch.Flat<int64_t>("policy_version")->end()),
            version - 1);
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange lanes) {
        EXPECT_EQ(lanes,
                  (LaneRange{.first = producer * kLanes, .count = kLanes}));
        ++cuts;
        return absl::OkStatus();
      });
  for (int i = 0; i < 50; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(sink));
    // A worker has made a batch ahead, of this version or an older one.
    const int64_t batches =
        (collector->frames() + collector->stale_frames()) / 10;
    acts.WaitFor((batches + 2) * kActs);
    for (int j = 0; j < 3; ++j) {
      RILL_ASSERT_OK_AND_ASSIGN(version, store->Publish(Weights(version + 1)));
    }
  }
  EXPECT_GT(cuts, 0);
  EXPECT_EQ(collector->stale_frames(), cuts * 10);
  EXPECT_EQ(collector->frames(), 500);
}

absl::StatusOr<std::unique_ptr<Source>> MakeSyncSource() {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiSyncCollector::Create(CartPoles(2, 40)));
  return source;
}

// It has one worker, so that batches come in one order.
absl::StatusOr<std::unique_ptr<Source>> MakeAsyncSource() {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                        MultiAsyncCollector::Create(CartPoles(1, 40)));
  return source;
}

INSTANTIATE_TEST_SUITE_P(MultiCollectors, SourceConformanceTest,
                         ::testing::Values(MakeSyncSource, MakeAsyncSource));

}  // namespace
}  // namespace rill
