// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/doorbell.h"
#include "rill/replay/draw_gate.h"
#include "rill/replay/placement.h"
#include "rill/replay/sample_batches.h"
#include "rill/replay/sample_queue.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/transform_stage.h"
#include "rill/replay/write_counter.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill::replay_internal {
namespace {

using ::testing::SizeIs;

constexpr int64_t kBatch = 3;

// A queue over 8 slots of one lane, and what it needs; no worker runs before
// StartWorkers.
struct Fixture {
  explicit Fixture(int64_t prefetch,
                   FunctionTransform::Function forward = nullptr) {
    TransformStage::Options options;
    options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
    options.before_waiting = [this] { wake.Ring(); };
    if (forward != nullptr) {
      options.transforms.push_back(
          *FunctionTransform::Create({.forward = std::move(forward)}));
    }
    transforms = *TransformStage::Create(std::move(options));
    EXPECT_THAT(storage->AddObserver(sampler->observer()), IsOk());
    EXPECT_THAT(storage->AddObserver(&writes), IsOk());
    queue = std::make_unique<SampleQueue>(
        SampleQueue::Options{.storage = storage.get(),
                             .sampler = sampler.get(),
                             .writes = &writes,
                             .gate = &gate,
                             .transforms = transforms.get(),
                             .placement = placement.get(),
                             .clock = &Clock::Steady(),
                             .wake = &wake,
                             .batch_size = kBatch,
                             .prefetch = prefetch,
                             .seed = 5});
  }
  ~Fixture() {
    queue.reset();
    storage->RemoveObserver(sampler->observer());
    storage->RemoveObserver(&writes);
  }

  // Slots of the next batch; empty with an error.
  std::vector<int64_t> Next() {
    PlacedBatch batch;
    if (!queue->Take(kBatch, &batch).ok()) return {};
    const auto slots = batch.rows.Get("index")->Flat<int64_t>();
    return {slots->begin(), slots->end()};
  }

  std::shared_ptr<Storage> storage = MakeStorage(8);
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  Doorbell wake{4};
  DrawGate gate{[this] { wake.Ring(); }};
  WriteCounter writes{&gate};
  std::unique_ptr<TransformStage> transforms;
  std::unique_ptr<Placement> placement = *Placement::Create({});
  std::unique_ptr<SampleQueue> queue;
};

// Whatever is made ahead, by however many threads: the same batches.
TEST(SampleQueueThreadsTest, BatchesAreThoseOfOneThread) {
  constexpr int kBatches = 40;
  Fixture plain(0);
  RILL_ASSERT_OK(plain.storage->Extend(NumberedSteps(1, 8)));
  std::vector<std::vector<int64_t>> want;
  for (int i = 0; i < kBatches; ++i) want.push_back(plain.Next());
  for (const int64_t prefetch : {1, 2, 7}) {
    for (const int threads : {1, 3}) {
      std::atomic<int64_t> seen = 0;
      Fixture fixture(prefetch, [&seen](TensorDict*) {
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

// Callers, workers and somebody who clears: each batch is of rows that were
// there, or says that there were too few.
TEST(SampleQueueThreadsTest, SurvivesWhoClearsTheStorage) {
  Fixture fixture(3);
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
        const absl::Status status = fixture.queue->Take(kBatch, &batch);
        if (!status.ok()) continue;
        EXPECT_EQ(batch.rows.batch_shape().num_elements(), kBatch);
      }
    });
  }
  for (std::thread& taker : takers) taker.join();
  is_done = true;
  clearer.join();
}

}  // namespace
}  // namespace rill::replay_internal
