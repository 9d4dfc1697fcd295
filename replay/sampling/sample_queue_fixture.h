// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_FIXTURE_H_
#define RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/clock.h"
#include "rill/base/wake_signal.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/write_counter.h"
#include "rill/replay/sampling/placement.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/sampling/sample_queue.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill::replay_internal {

// Rows of a batch.
inline constexpr int64_t kQueueBatch = 3;

// A SampleQueue over 8 slots of one lane, and what it needs; no worker runs
// before StartWorkers. Thread-safety: that of its parts.
struct QueueFixture {
  explicit QueueFixture(int64_t prefetch,
                        FunctionTransform::Function forward = nullptr) {
    TransformStage::Options options;
    options.sample_spec = [](const TensorDictSpec& rows) { return rows; };
    options.before_waiting = [this] { wake.Notify(); };
    if (forward != nullptr) {
      options.transforms.push_back(
          *FunctionTransform::Create({.forward = std::move(forward)}));
    }
    transforms = *TransformStage::Create(std::move(options));
    RILL_EXPECT_OK(storage->AddObserver(sampler->observer()));
    RILL_EXPECT_OK(storage->AddObserver(&writes));
    queue = std::make_unique<SampleQueue>(
        SampleQueue::Options{.storage = storage.get(),
                             .sampler = sampler.get(),
                             .writes = &writes,
                             .drawn_rows = &drawn_rows,
                             .transforms = transforms.get(),
                             .placement = placement.get(),
                             .clock = &Clock::Steady(),
                             .wake = &wake,
                             .batch_size = kQueueBatch,
                             .prefetch = prefetch,
                             .seed = 5});
  }
  ~QueueFixture() {
    queue.reset();
    storage->RemoveObserver(sampler->observer());
    storage->RemoveObserver(&writes);
  }

  // Slots of the next batch; empty with an error.
  std::vector<int64_t> Next() {
    PlacedBatch batch;
    if (!queue->Take(kQueueBatch, &batch).ok()) return {};
    const auto slots = batch.rows.Get("index")->Flat<int64_t>();
    return {slots->begin(), slots->end()};
  }

  std::shared_ptr<Storage> storage = MakeStorage(8);
  std::unique_ptr<Sampler> sampler = MakeUniformSampler();
  WakeSignal wake{4};
  DrawnRows drawn_rows{[this] { wake.Notify(); }};
  WriteCounter writes{&drawn_rows};
  std::unique_ptr<TransformStage> transforms;
  std::unique_ptr<Placement> placement = *Placement::Create({});
  std::unique_ptr<SampleQueue> queue;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_SAMPLE_QUEUE_FIXTURE_H_
