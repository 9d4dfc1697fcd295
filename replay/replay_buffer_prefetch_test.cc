// SPDX-License-Identifier: Apache-2.0
// Batches that are made ahead are those that one asks for one by one.
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/testing/fake_prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

constexpr int64_t kLanes = 2;
constexpr int64_t kCapacity = 48;
constexpr int kSamplers = 4;

std::unique_ptr<Sampler> SamplerOfKind(int kind) {
  switch (kind) {
    case 0:
      return MakeUniformSampler();
    case 1:
      return MakeSamplerWithoutReplacement();
    case 2:
      return *MakePrioritizedSampler();
    default:
      return *MakeSliceSampler({.length = 2});
  }
}

std::unique_ptr<ReplayBuffer> MakeBuffer(int sampler, int64_t prefetch,
                                         int threads = 1) {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(kCapacity, kLanes);
  options.sampler = SamplerOfKind(sampler);
  options.transforms.push_back(MakeFakeRowCounter());
  options.transforms.push_back(*RewardScaling::Create({.scale = 2}));
  options.batch_size = 8;
  options.seed = 21;
  options.prefetch = prefetch;
  options.prefetch_threads = threads;
  return *ReplayBuffer::Create(std::move(options));
}

TensorDict SampleOf(ReplayBuffer& buffer) {
  auto batch = buffer.Sample();
  RILL_EXPECT_OK(batch);
  return batch.ok() ? *std::move(batch) : TensorDict();
}

// --- Order -------------------------------------------------------------------

// Asks a buffer that makes nothing ahead for each batch at the moment at which
// one with `prefetch` has to draw it.
class PlainQueue {
 public:
  PlainQueue(std::unique_ptr<ReplayBuffer> buffer, int64_t prefetch)
      : buffer_(std::move(buffer)), prefetch_(prefetch) {}

  ReplayBuffer& buffer() { return *buffer_; }
  TensorDict Sample() {
    while (static_cast<int64_t>(ahead_.size()) <= prefetch_) {
      ahead_.push_back(SampleOf(*buffer_));
    }
    TensorDict next = std::move(ahead_.front());
    ahead_.pop_front();
    return next;
  }

 private:
  const std::unique_ptr<ReplayBuffer> buffer_;
  const int64_t prefetch_;
  std::deque<TensorDict> ahead_;
};

void WriteSteps(const Rng& rng, uint64_t round, ReplayBuffer& buffer) {
  const int64_t lane = rng.UniformInt(round, 1, kLanes);
  const int64_t lanes = 1 + rng.UniformInt(round, 2, kLanes - lane);
  const int64_t steps = 2 + rng.UniformInt(round, 3, 7);
  RILL_EXPECT_OK(
      buffer.Extend(NumberedSteps(lanes, steps, static_cast<int64_t>(round)),
                    {.first_lane = lane}));
}

void GivePriorities(const Rng& rng, uint64_t round, const TensorDict& batch,
                    ReplayBuffer& buffer) {
  std::vector<float> priorities;
  for (uint32_t i = 0; i < batch.batch_shape()[0]; ++i) {
    priorities.push_back(10 * rng.UniformFloat(round, 100 + i));
  }
  RILL_EXPECT_OK(buffer.UpdatePriorities(batch, priorities));
}

// Writes and priorities in between; rings that go round many times.
TEST(ReplayBufferPrefetchTest, BatchIsDrawnInTheCallThatHandsOutTheOneNBefore) {
  const Rng rng(/*seed=*/8, RngStream::kUser);
  for (int sampler = 0; sampler < kSamplers; ++sampler) {
    for (const auto& [prefetch, threads] : std::vector<std::pair<int64_t, int>>{
             {0, 1}, {1, 1}, {3, 1}, {3, 2}, {3, 4}, {9, 2}}) {
      PlainQueue want(MakeBuffer(sampler, 0), prefetch);
      auto got = MakeBuffer(sampler, prefetch, threads);
      for (ReplayBuffer* buffer : {&want.buffer(), got.get()}) {
        RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 20)));
      }
      for (uint64_t round = 0; round < 60; ++round) {
        if (rng.UniformInt(round, 0, 3) == 0) {
          WriteSteps(rng, round, want.buffer());
          WriteSteps(rng, round, *got);
          continue;
        }
        const TensorDict batch = SampleOf(*got);
        const TensorDict other = want.Sample();
        ASSERT_THAT(batch.CheckEqual(other), IsOk())
            << "sampler " << sampler << ", prefetch " << prefetch << ", "
            << threads << " threads, round " << round;
        GivePriorities(rng, round, other, want.buffer());
        GivePriorities(rng, round, batch, *got);
      }
      EXPECT_EQ(got->batch_number(), want.buffer().batch_number());
    }
  }
}

TEST(ReplayBufferPrefetchTest, AgreesWithNoneAheadWhereNothingIsWritten) {
  for (int sampler = 0; sampler < kSamplers; ++sampler) {
    for (const int64_t prefetch : {1, 5}) {
      auto want = MakeBuffer(sampler, 0);
      auto got = MakeBuffer(sampler, prefetch, 2);
      for (ReplayBuffer* buffer : {want.get(), got.get()}) {
        RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 24)));
      }
      TensorDict batch;
      for (int i = 0; i < 30; ++i) {
        RILL_ASSERT_OK(got->SampleInto(&batch));
        RILL_ASSERT_OK(batch.CheckEqual(SampleOf(*want)))
            << "sampler " << sampler << ", prefetch " << prefetch << ", batch "
            << i;
      }
    }
  }
}

TEST(ReplayBufferPrefetchTest, F1_SoManyAreAheadAfterEachSample) {
  for (const int64_t prefetch : {1, 5}) {
    auto buffer = MakeBuffer(0, prefetch);
    EXPECT_EQ(buffer->GetStats().batches_ahead, 0);
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 4)));
    for (int64_t batches = 1; batches < 4; ++batches) {
      SampleOf(*buffer);
      EXPECT_EQ(buffer->GetStats().batches_ahead, prefetch);
      EXPECT_EQ(buffer->GetStats().batches, batches);
      EXPECT_EQ(buffer->batch_number(),
                static_cast<uint64_t>(batches + prefetch));
    }
  }
}

TEST(ReplayBufferPrefetchTest, AnotherNumberOfItemsIsABatchOfItsOwn) {
  auto want = MakeBuffer(2, 0);
  auto got = MakeBuffer(2, 2);
  for (ReplayBuffer* buffer : {want.get(), got.get()}) {
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 24)));
  }
  std::vector<TensorDict> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(SampleOf(*want));
  RILL_EXPECT_OK(SampleOf(*got).CheckEqual(batches[0]));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict other, want->Sample(6));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict mine, got->Sample(6));
  RILL_EXPECT_OK(mine.CheckEqual(other));
  RILL_EXPECT_OK(SampleOf(*got).CheckEqual(batches[1]));
  RILL_EXPECT_OK(SampleOf(*got).CheckEqual(batches[2]));
  RILL_EXPECT_OK(SampleOf(*got).CheckEqual(SampleOf(*want)));
}

// --- Errors ------------------------------------------------------------------

std::unique_ptr<BatchTransform> FailsAt(std::vector<int> calls,
                                        absl::Status status) {
  return *FunctionTransform::Create(
      {.forward = [calls = std::move(calls), status = std::move(status),
                   call = std::make_shared<int>(0)](TensorDict*) {
        for (const int each : calls) {
          if (each == *call) return ++*call, status;
        }
        ++*call;
        return absl::OkStatus();
      }});
}

TEST(ReplayBufferPrefetchTest, ErrorOfATransformBelongsToItsBatch) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInternal, absl::StatusCode::kOutOfRange}) {
    for (const int64_t prefetch : {0, 3}) {
      ReplayBuffer::Options options;
      options.storage = MakeStorage(20);
      options.sampler = MakeUniformSampler();
      options.transforms.push_back(MakeFakeRowCounter());
      options.transforms.push_back(
          FailsAt({2, 3, 7}, absl::Status(code, "no such luck")));
      options.batch_size = 4;
      options.prefetch = prefetch;
      options.prefetch_threads = 2;
      RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                                ReplayBuffer::Create(std::move(options)));
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 20)));
      RILL_ASSERT_OK_AND_ASSIGN(
          auto plain, ReplayBuffer::Create({.storage = MakeStorage(20),
                                            .sampler = MakeUniformSampler(),
                                            .batch_size = 4}));
      RILL_ASSERT_OK(plain->Extend(NumberedSteps(1, 20)));
      int64_t handed_out = 0;
      for (int i = 0; i < 12; ++i) {
        const TensorDict want = SampleOf(*plain);
        auto batch = buffer->Sample();
        if (i == 2 || i == 3 || i == 7) {
          EXPECT_THAT(batch, StatusIs(code, HasSubstr("no such luck"))) << i;
          continue;
        }
        RILL_ASSERT_OK(batch) << "prefetch " << prefetch << ", batch " << i;
        // Numbered as if those that failed had never been.
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor numbers,
                                  batch->Pop("row_number"));
        EXPECT_EQ(numbers.Flat<int64_t>()->front(), 4 * handed_out++);
        RILL_EXPECT_OK(batch->CheckEqual(want)) << "batch " << i;
      }
      EXPECT_EQ(buffer->GetStats().batches, 9);
    }
  }
}

TEST(ReplayBufferPrefetchTest, DrawAheadThatFailsIsMadeUpForAtItsTurn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(8),
                            .sampler = MakeFakePrioritizedSampler(),
                            .batch_size = 32,
                            .prefetch = 2}));
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
  EXPECT_EQ(buffer->batch_number(), 0u);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2)));
  const TensorDict batch = SampleOf(*buffer);
  RILL_ASSERT_OK(buffer->UpdatePriorities(batch, std::vector<float>(32, 0.0f)));
  SampleOf(*buffer);
  SampleOf(*buffer);
  EXPECT_EQ(buffer->GetStats().batches_ahead, 0);
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
  EXPECT_EQ(buffer->batch_number(), 3u);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1, 5)));
  const TensorDict next = SampleOf(*buffer);
  EXPECT_THAT(next.Flat<int64_t>("action"), IsOkAndHolds(Each(5)));
  EXPECT_EQ(buffer->batch_number(), 6u);
}

TEST(ReplayBufferPrefetchTest, ClearDropsWhatWasMadeAhead) {
  auto buffer = MakeBuffer(2, 4, 2);
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(kLanes, 24, 100)));
  SampleOf(*buffer);
  RILL_ASSERT_OK(buffer->Clear());
  EXPECT_EQ(buffer->GetStats().batches_ahead, 0);
  EXPECT_THAT(buffer->Sample(), IsFailedPrecondition());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 5), {.first_lane = 0}));
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(SampleOf(*buffer).Flat<int64_t>("action"),
                IsOkAndHolds(Each(Lt(5))));
  }
}

TEST(ReplayBufferPrefetchTest, BufferThatGoesWithAFullQueueLeavesTheStorage) {
  auto storage = MakeStorage(16);
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, ReplayBuffer::Create({.storage = storage,
                                           .sampler = MakeUniformSampler(),
                                           .batch_size = 8,
                                           .prefetch = 16,
                                           .prefetch_threads = 3}));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 3)));
    SampleOf(*buffer);
  }
  EXPECT_EQ(storage->size(), 16);
}

TEST(ReplayBufferPrefetchTest, F2_WithoutABatchSizeItIsRefusedAtOnce) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(4),
                                    .sampler = MakeUniformSampler(),
                                    .prefetch = 1}),
              IsInvalidArgument("prefetch: got 1 with batch_size 0, want a "
                                "batch_size"));
}

}  // namespace
}  // namespace rill
