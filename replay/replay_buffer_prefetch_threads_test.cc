// SPDX-License-Identifier: Apache-2.0
// Writes beside batches that were drawn and are not gathered yet.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/testing/watched_storage.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

// A buffer over 16 rows, of steps 8 .. 23 with step 16 in slot 0, whose next
// write goes to slot 8. Batches are the slots in order, four each, one ahead:
// those of 0 .. 7 are drawn, and their gathers held, while it lives.
class HeldGathers {
 public:
  explicit HeldGathers(std::unique_ptr<Writer> writer = nullptr,
                       bool asks = false)
      : storage_(std::make_shared<WatchedStorage>(MakeStorage(16), asks)) {
    buffer_ = *ReplayBuffer::Create(
        {.storage = storage_,
         .sampler = MakeSamplerWithoutReplacement({.shuffle = false}),
         .batch_size = 4,
         .prefetch = 1,
         .writer = std::move(writer)});
    RILL_EXPECT_OK(buffer_->Extend(NumberedSteps(1, 24)));
    storage_->HoldReads();
    consumer_ = std::thread([this] {
      auto batch = buffer_->Sample();
      RILL_EXPECT_OK(batch);
      if (batch.ok()) first_ = *std::move(batch);
    });
    storage_->AwaitHeldReads(2);
  }
  ~HeldGathers() {
    storage_->LetReads();
    consumer_.join();
    // The rows as they were when they were drawn.
    EXPECT_THAT(first_.Flat<int64_t>("action"),
                IsOkAndHolds(ElementsAre(16, 17, 18, 19)));
    auto second = buffer_->Sample();
    RILL_EXPECT_OK(second);
    if (second.ok()) {
      EXPECT_THAT(second->Flat<int64_t>("action"),
                  IsOkAndHolds(ElementsAre(20, 21, 22, 23)));
    }
  }

  ReplayBuffer& buffer() { return *buffer_; }
  WatchedStorage& storage() { return *storage_; }

  // `write` has not come to its end while the gathers are held, and does after.
  void ExpectWaits(const std::function<absl::Status()>& write,
                   const std::function<void()>& await_begin) {
    std::atomic<bool> is_over = false;
    std::thread writer([&] {
      RILL_EXPECT_OK(write());
      is_over = true;
    });
    await_begin();
    for (int i = 0; i < 500; ++i) std::this_thread::yield();
    EXPECT_FALSE(is_over);
    storage_->LetReads();
    writer.join();
  }

 private:
  std::shared_ptr<WatchedStorage> storage_;
  std::unique_ptr<ReplayBuffer> buffer_;
  TensorDict first_;
  std::thread consumer_;
};

TEST(ReplayBufferPrefetchThreadsTest, AppendWaitsForTheRowsThatItOverwrites) {
  HeldGathers held;
  RILL_EXPECT_OK(held.buffer().Extend(NumberedSteps(1, 8, 50)));
  held.ExpectWaits(
      [&] { return held.buffer().Extend(NumberedSteps(1, 1, 70)).status(); },
      [&] { held.storage().AwaitCursorCalls(2); });
}

TEST(ReplayBufferPrefetchThreadsTest,
     AppendWaitsWhereItComesToARowThatIsDrawn) {
  ASSERT_TRUE(MakeStorage(16)->traits().asks_before_overwriting);
  HeldGathers held(nullptr, /*asks=*/true);
  RILL_EXPECT_OK(held.buffer().Extend(NumberedSteps(1, 7, 50)));
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease last,
                            held.storage().Lease({.first = 15, .count = 1}));
  held.ExpectWaits(
      [&] { return held.buffer().Extend(NumberedSteps(1, 2, 57)).status(); },
      [&] {
        while (last.valid()) std::this_thread::yield();
      });
}

TEST(ReplayBufferPrefetchThreadsTest, RowThatIsAheadIsWaitedForToo) {
  HeldGathers held;
  const TensorDict row = *NumberedSteps(1, 1, 70).SelectDim(0, 0);
  RILL_EXPECT_OK(held.buffer().WriteAt({8}, row));
  RILL_EXPECT_OK(held.buffer().WriteAt({15}, row));
  std::atomic<bool> has_begun = false;
  held.ExpectWaits(
      [&] {
        has_begun = true;
        return held.buffer().WriteAt({7}, row);
      },
      [&] {
        while (!has_begun) std::this_thread::yield();
      });
}

// Batches that it has drawn, and nobody will gather, keep no writer waiting.
TEST(ReplayBufferPrefetchThreadsTest, ABufferThatGoesLeavesTheStorageToOthers) {
  const auto storage = MakeStorage(16);
  std::atomic<bool> is_held = false;
  std::atomic<bool> may_go_on = false;
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(
      *FunctionTransform::Create({.forward = [&](TensorDict* batch) {
        RILL_ASSIGN_OR_RETURN(const auto steps, batch->Flat<int64_t>("action"));
        if (steps[0] == 0) return absl::OkStatus();  // The one that is taken.
        is_held = true;
        while (!may_go_on) std::this_thread::yield();
        return absl::OkStatus();
      }}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto leaving,
      ReplayBuffer::Create(
          {.storage = storage,
           .sampler = MakeSamplerWithoutReplacement({.shuffle = false}),
           .transforms = std::move(transforms),
           .batch_size = 4,
           .prefetch = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto staying,
      ReplayBuffer::Create(
          {.storage = storage, .sampler = MakePrioritizedSampler().value()}));
  RILL_ASSERT_OK(staying->Extend(NumberedSteps(1, 16)));
  RILL_ASSERT_OK(leaving->Sample());  // Slots 0 .. 3; ahead are 4 .. 11.
  while (!is_held) std::this_thread::yield();
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease ninth,
                            storage->Lease({.first = 8, .count = 1}));
  std::thread writer(
      [&] { RILL_EXPECT_OK(staying->Extend(NumberedSteps(1, 9, 50))); });
  while (ninth.valid()) std::this_thread::yield();
  std::thread leaver([&] { leaving.reset(); });
  for (int i = 0; i < 500; ++i) std::this_thread::yield();
  may_go_on = true;
  leaver.join();
  writer.join();
}

// Its rows are not known before.
TEST(ReplayBufferPrefetchThreadsTest, TopKWriterWaitsForAll) {
  RILL_ASSERT_OK_AND_ASSIGN(auto writer,
                            TopKWriter::Create({.rank_key = "next/reward"}));
  HeldGathers held(std::move(writer));
  std::atomic<bool> has_begun = false;
  held.ExpectWaits(
      [&] {
        has_begun = true;
        return held.buffer().Extend(NumberedSteps(1, 10, 500)).status();
      },
      [&] {
        while (!has_begun) std::this_thread::yield();
      });
}

// --- Batches that lie --------------------------------------------------------

// A call that waits for all that is drawn, or for the rows 10 and 11.
struct Waiter {
  const char* name;
  std::function<absl::Status(ReplayBuffer&)> call;
  bool asks = false;
  bool has_transforms = false;
  bool has_top_k_writer = false;
};

std::vector<Waiter> Waiters() {
  const auto extend = [](ReplayBuffer& buffer) {
    return buffer.Extend(NumberedSteps(1, 12, 500)).status();
  };
  return {
      {.name = "append", .call = extend},
      {.name = "append window by window", .call = extend, .asks = true},
      {.name = "append through transforms",
       .call = extend,
       .has_transforms = true},
      {.name = "top k", .call = extend, .has_top_k_writer = true},
      {.name = "write in place",
       .call =
           [](ReplayBuffer& buffer) {
             return buffer.WriteAt({10},
                                   *NumberedSteps(1, 1, 70).SelectDim(0, 0));
           }},
      {.name = "another batch size",
       .call = [](ReplayBuffer& buffer) { return buffer.Sample(3).status(); },
       .has_transforms = true},
      {.name = "save",
       .call =
           [](ReplayBuffer& buffer) {
             return buffer.Save(::testing::TempDir() + "/lying_batches");
           }},
      {.name = "clear",
       .call = [](ReplayBuffer& buffer) { return buffer.Clear(); }},
      {.name = "transform that is added",
       .call =
           [](ReplayBuffer& buffer) {
             return buffer.AppendTransform(MakeFakeRowCounter());
           }},
  };
}

// A buffer that makes four batches of two rows ahead, of rows 0 .. 15 in order.
// One of the drawn batches lies: it is not enough to wake the worker.
class LyingBatch {
 public:
  explicit LyingBatch(const Waiter& waiter)
      : storage_(
            std::make_shared<WatchedStorage>(MakeStorage(16), waiter.asks)) {
    ReplayBuffer::Options options;
    options.storage = storage_;
    options.sampler = MakeSamplerWithoutReplacement({.shuffle = false});
    options.batch_size = 2;
    options.prefetch = 4;
    if (waiter.has_transforms) {
      options.transforms.push_back(MakeFakeRowCounter());
    }
    if (waiter.has_top_k_writer) {
      options.writer = *TopKWriter::Create({.rank_key = "next/reward"});
    }
    buffer_ = *ReplayBuffer::Create(std::move(options));
    RILL_EXPECT_OK(buffer_->Extend(NumberedSteps(1, 16)));
    RILL_EXPECT_OK(buffer_->Sample());
    AwaitReads(5);
    Yield();                            // The worker goes to sleep.
    RILL_EXPECT_OK(buffer_->Sample());  // Draws rows 10 and 11.
  }

  static void Yield() {
    for (int i = 0; i < 200; ++i) std::this_thread::yield();
  }
  void AwaitReads(size_t reads) {
    for (size_t seen = 0; seen < reads;) seen += storage_->TakeReads().size();
  }
  bool IsMade() { return !storage_->TakeReads().empty(); }
  ReplayBuffer& buffer() { return *buffer_; }

 private:
  const std::shared_ptr<WatchedStorage> storage_;
  std::unique_ptr<ReplayBuffer> buffer_;
};

// Where the worker had not gone to sleep yet it makes the one.
TEST(ReplayBufferPrefetchThreadsTest, OneOfFourBatchesWakesNoWorker) {
  int lying = 0;
  for (int round = 0; round < 20; ++round) {
    LyingBatch batch({});
    for (int i = 0; i < 10; ++i) LyingBatch::Yield();
    const bool is_lying = !batch.IsMade();
    if (is_lying) ++lying;
    RILL_EXPECT_OK(batch.buffer().Sample());  // Draws the second of four.
    if (is_lying) batch.AwaitReads(2);
  }
  EXPECT_GE(lying, 10);
}

// Else these hang.
TEST(ReplayBufferPrefetchThreadsTest, WhoWaitsForABatchThatLiesWakesAWorker) {
  for (const Waiter& waiter : Waiters()) {
    SCOPED_TRACE(waiter.name);
    for (int round = 0; round < 20; ++round) {
      LyingBatch batch(waiter);
      RILL_EXPECT_OK(waiter.call(batch.buffer()));
    }
  }
}

// There is never more than one batch to draw: a worker makes it.
TEST(ReplayBufferPrefetchThreadsTest, ShortQueueIsMadeAheadToo) {
  const auto storage = std::make_shared<WatchedStorage>(MakeStorage(16), true);
  RILL_ASSERT_OK_AND_ASSIGN(auto sampler, MakeConsumingSampler());
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create({.storage = storage,
                                                  .sampler = std::move(sampler),
                                                  .batch_size = 2,
                                                  .prefetch = 8}));
  const auto await_reads = [&](size_t reads) {
    for (size_t seen = 0; seen < reads;) seen += storage->TakeReads().size();
  };
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 4)));
  RILL_ASSERT_OK(buffer->Sample());
  await_reads(2);
  for (int64_t first = 4; first < 40; first += 2) {
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 2, first)));
    RILL_ASSERT_OK(buffer->Sample());  // Is there; draws what has come.
    await_reads(1);
  }
}

// --- Full rate ---------------------------------------------------------------

// Step n is in slot n % 16, which then has generation n / 16.
int64_t WrongRows(const TensorDict& batch) {
  auto observations = batch.Flat<float>("observation");
  auto actions = batch.Flat<int64_t>("action");
  auto slots = batch.Flat<int64_t>("index");
  auto generations = batch.Flat<int64_t>("index_generation");
  if (!observations.ok() || !actions.ok() || !slots.ok() || !generations.ok()) {
    return 1;
  }
  int64_t wrong = 0;
  for (size_t i = 0; i < actions->size(); ++i) {
    const int64_t step = (*actions)[i];
    if (step != 16 * (*generations)[i] + (*slots)[i] ||
        (*observations)[3 * i] != static_cast<float>(step) ||
        (*observations)[3 * i + 2] != static_cast<float>(step)) {
      ++wrong;
    }
  }
  return wrong;
}

// Consumers go on until the writer is through, so neither may starve.
TEST(ReplayBufferPrefetchThreadsTest, TinyRingAtFullRate) {
  for (const bool has_transforms : {false, true}) {
    for (const int64_t prefetch : {0, 1, 5}) {
      ReplayBuffer::Options options;
      options.storage = MakeStorage(16);
      options.sampler = *MakePrioritizedSampler();
      if (has_transforms) options.transforms.push_back(MakeFakeRowCounter());
      options.batch_size = 8;
      options.prefetch = prefetch;
      options.prefetch_threads = 2;
      RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                                ReplayBuffer::Create(std::move(options)));
      RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 8)));
      std::atomic<bool> is_writing = true;
      std::atomic<int64_t> failures = 0;
      std::atomic<int64_t> wrong = 0;
      std::thread writer([&] {
        for (int64_t step = 8; step < 400; step += 1 + step % 5) {
          if (!buffer->Extend(NumberedSteps(1, 1 + step % 5, step)).ok()) {
            ++failures;
          }
        }
        is_writing = false;
      });
      std::vector<std::thread> consumers;
      for (int i = 0; i < 3; ++i) {
        consumers.emplace_back([&] {
          TensorDict batch;
          const std::vector<float> priorities = {1, 2, 3, 4, 5, 6, 7, 8};
          while (is_writing) {
            if (!buffer->SampleInto(&batch).ok()) ++failures;
            wrong += WrongRows(batch);
            if (!buffer->UpdatePriorities(batch, priorities).ok()) ++failures;
          }
        });
      }
      writer.join();
      for (std::thread& consumer : consumers) consumer.join();
      EXPECT_EQ(failures, 0);
      EXPECT_EQ(wrong, 0);
    }
  }
}

}  // namespace
}  // namespace rill
