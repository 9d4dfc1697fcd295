// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/sampling/sample_queue.h"
#include "rill/replay/sampling/sample_queue_fixture.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

// Whatever is made ahead, by however many threads: the same batches.
TEST(SampleQueueThreadsTest, BatchesAreThoseOfOneThread) {
  constexpr int kBatches = 40;
  QueueFixture plain(0);
  RILL_ASSERT_OK(plain.storage->Extend(NumberedSteps(1, 8)));
  std::vector<std::vector<int64_t>> want;
  for (int i = 0; i < kBatches; ++i) want.push_back(plain.Next());
  for (const int64_t prefetch : {1, 2, 7}) {
    for (const int threads : {1, 3}) {
      std::atomic<int64_t> seen = 0;
      QueueFixture fixture(prefetch, [&seen](TensorDict*) {
        ++seen;
        return absl::OkStatus();
      });
      fixture.queue->StartWorkers(threads);
      RILL_ASSERT_OK(fixture.storage->Extend(NumberedSteps(1, 8)));
      for (int i = 0; i < kBatches; ++i) ASSERT_EQ(fixture.Next(), want[i]);
      fixture.queue->AwaitMade();
      EXPECT_EQ(seen, kBatches + prefetch);
    }
  }
}

// Callers and workers beside a thread that clears: each batch is of rows that
// were there, or says that there were too few.
TEST(SampleQueueThreadsTest, SurvivesWhoClearsTheStorage) {
  QueueFixture fixture(3);
  fixture.queue->StartWorkers(2);
  std::atomic<bool> is_done = false;
  std::thread clearer([&] {
    while (!is_done) {
      RILL_EXPECT_OK(fixture.storage->Extend(NumberedSteps(1, 6)));
      RILL_EXPECT_OK(fixture.storage->Clear());
    }
  });
  std::vector<std::thread> takers;
  for (int i = 0; i < 2; ++i) {
    takers.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        PlacedBatch batch;
        const absl::Status status = fixture.queue->Take(kQueueBatch, &batch);
        if (!status.ok()) continue;
        EXPECT_EQ(batch.rows.batch_shape().num_elements(), kQueueBatch);
      }
    });
  }
  for (std::thread& taker : takers) taker.join();
  is_done = true;
  clearer.join();
}

}  // namespace
}  // namespace rill::replay_internal
