// SPDX-License-Identifier: Apache-2.0
// Several collectors into one buffer, by default options where nothing else is
// said: no sample joins steps that do not follow one another.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/multi_sync_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/flow/exactly_once_sink.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/trajectory_id.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::SizeIs;

constexpr int64_t kLanes = 4;

absl::StatusOr<std::unique_ptr<SyncCollector>> Collector(
    int64_t episode_steps, SyncCollector::Options options = {}) {
  RILL_ASSIGN_OR_RETURN(options.env,
                        MakeCountingEnv({.lanes = kLanes,
                                         .episode_steps = episode_steps,
                                         .stagger_steps = 1}));
  options.frames_per_batch = kLanes * 3;
  return SyncCollector::Create(std::move(options));
}

std::unique_ptr<ReplayBuffer> Buffer(int64_t lanes = kLanes) {
  auto storage =
      DenseStorage::Create({.capacity = lanes * 100, .lanes = lanes});
  RILL_EXPECT_OK(storage);
  auto buffer =
      ReplayBuffer::Create({.storage = *std::move(storage),
                            .sampler = *MakeSliceSampler({.length = 2}),
                            .batch_size = 2000});
  RILL_EXPECT_OK(buffer);
  return *std::move(buffer);
}

// How many second steps of slices are not the ones behind the first.
int64_t WrongNeighbours(ReplayBuffer& buffer) {
  const auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  const auto observation = batch->Flat<float>("observation");
  const auto next = batch->Flat<float>("next/observation");
  const auto ids = batch->Flat<int64_t>("collector/traj_ids");
  int64_t wrong = 0;
  for (size_t i = 1; i < observation->size(); i += 2) {
    wrong += (*observation)[i] != (*next)[i - 1] || (*ids)[i] != (*ids)[i - 1];
  }
  return wrong;
}

std::set<int64_t> Producers(const TensorDict& batch) {
  std::set<int64_t> producers;
  const auto ids = batch.Flat<int64_t>("collector/traj_ids");
  RILL_EXPECT_OK(ids);
  for (const int64_t id : *ids) producers.insert(TrajectoryProducer(id));
  return producers;
}

TEST(SharedBufferTest, TwoCollectorsByDefaultAreTwoSources) {
  const auto buffer = Buffer();
  RILL_ASSERT_OK_AND_ASSIGN(const auto a, Collector(5));
  RILL_ASSERT_OK_AND_ASSIGN(const auto b, Collector(7));
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK(a->CollectInto(*buffer));
    RILL_ASSERT_OK(b->CollectInto(*buffer));
  }
  EXPECT_EQ(WrongNeighbours(*buffer), 0);
  EXPECT_THAT(Producers(*buffer->ReadAll()), SizeIs(2));
}

TEST(SharedBufferTest, SoAreTwoOfOneNumberAndANewOneInAnOldOnesPlace) {
  const auto buffer = Buffer();
  RILL_ASSERT_OK_AND_ASSIGN(auto a, Collector(5, {.producer = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto b, Collector(7, {.producer = 3}));
  for (int i = 0; i < 30; ++i) {
    RILL_ASSERT_OK(a->CollectInto(*buffer));
    RILL_ASSERT_OK(b->CollectInto(*buffer));
    EXPECT_EQ(WrongNeighbours(*buffer), 0);
    if (i % 7 != 6) continue;
    RILL_ASSERT_OK_AND_ASSIGN(a, Collector(5, {.producer = 3}));
  }
}

TEST(SharedBufferTest, NoneLosesBatchesToAnotherBeforeASinkThatDropsRepeats) {
  const auto buffer = Buffer();
  ExactlyOnceSink once(buffer.get());
  RILL_ASSERT_OK_AND_ASSIGN(const auto a, Collector(5));
  RILL_ASSERT_OK_AND_ASSIGN(const auto b, Collector(7));
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(a->CollectInto(once));
    RILL_ASSERT_OK(b->CollectInto(once));
  }
  EXPECT_EQ(buffer->size(), a->frames() + b->frames());
}

TEST(SharedBufferTest, BatchesThatTheBufferDoesNotGetAreAGap) {
  const auto buffer = Buffer();
  const auto second = Buffer();
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, Collector(20));
  for (int i = 0; i < 12; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(*buffer));
    if (i % 3 == 0) {
      RILL_ASSERT_OK(collector->Next().status());
    }
    // To each of two buffers in turn.
    RILL_ASSERT_OK(collector->CollectInto(*second));
    // A sink that takes some batches only.
    FunctionSink some([&](const TensorDict& batch, const WriteInfo& info) {
      return i % 2 == 0 ? buffer->Write(batch, info) : absl::OkStatus();
    });
    RILL_ASSERT_OK(collector->CollectInto(some));
  }
  EXPECT_EQ(WrongNeighbours(*buffer), 0);
  EXPECT_EQ(WrongNeighbours(*second), 0);
}

TEST(SharedBufferTest, ASinkIsToldOfStepsThatItLacks) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, Collector(20));
  std::string calls;
  FunctionSink sink(
      [&](const TensorDict& /*batch*/, const WriteInfo& /*info*/) {
        calls += 'w';
        return absl::OkStatus();
      },
      [&](int64_t /*producer*/, LaneRange /*lanes*/) {
        calls += 'c';
        return absl::OkStatus();
      });
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(collector->CollectInto(sink));
    RILL_ASSERT_OK(collector->CollectInto(sink));
    RILL_ASSERT_OK(collector->Next().status());
  }
  EXPECT_EQ(calls, "wwcwwcww");
}

TEST(SharedBufferTest, AResumedCollectorKeepsItsNumberWhateverOthersHave) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto before, Collector(5));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, before->Next());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, before->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(const auto after, Collector(5));
  RILL_ASSERT_OK(after->LoadState(state));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict resumed, after->Next());
  EXPECT_EQ(Producers(resumed), Producers(batch));
  RILL_ASSERT_OK_AND_ASSIGN(const auto fresh, Collector(5));
  RILL_ASSERT_OK_AND_ASSIGN(batch, fresh->Next());
  EXPECT_NE(Producers(resumed), Producers(batch));
}

MultiCollectorOptions Workers(int64_t episode_steps) {
  MultiCollectorOptions options;
  options.workers = 2;
  options.worker =
      [=](const WorkerContext& /*context*/) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(
        parts.env,
        MakeCountingEnv(
            {.lanes = 2, .episode_steps = episode_steps, .stagger_steps = 1}));
    return parts;
  };
  options.frames_per_batch = 12;
  return options;
}

TEST(SharedBufferTest, WorkersOfSeveralCollectorsAreSourcesOfTheirOwn) {
  const auto buffer = Buffer();
  RILL_ASSERT_OK_AND_ASSIGN(const auto a,
                            MultiSyncCollector::Create(Workers(5)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto b,
                            MultiAsyncCollector::Create(Workers(7)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto c, Collector(6));
  for (int i = 0; i < 20; ++i) {
    for (Source* source :
         {static_cast<Source*>(a.get()), static_cast<Source*>(b.get()),
          static_cast<Source*>(c.get())}) {
      RILL_ASSERT_OK(source->CollectInto(*buffer));
    }
  }
  EXPECT_EQ(WrongNeighbours(*buffer), 0);
}

TEST(SharedBufferTest, WorkersKeepTheirNumbersOverALoad) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto other, Collector(5));
  RILL_ASSERT_OK_AND_ASSIGN(const auto before,
                            MultiSyncCollector::Create(Workers(5)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, before->Next());
  const std::set<int64_t> producers = Producers(batch);
  EXPECT_THAT(producers, SizeIs(2));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, before->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(batch, before->Next());
  RILL_ASSERT_OK_AND_ASSIGN(const auto after,
                            MultiSyncCollector::Create(Workers(5)));
  RILL_ASSERT_OK(after->LoadState(state));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict resumed, after->Next());
  RILL_EXPECT_OK(resumed.CheckEqual(batch));
  EXPECT_EQ(Producers(resumed), producers);
}

}  // namespace
}  // namespace rill
