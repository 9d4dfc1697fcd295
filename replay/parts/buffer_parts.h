// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_BUFFER_PARTS_H_
#define RILL_REPLAY_PARTS_BUFFER_PARTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/wake_signal.h"
#include "rill/replay/buffer_options.h"
#include "rill/replay/buffer_stats.h"
#include "rill/replay/parts/buffer_checkpoint.h"
#include "rill/replay/parts/write_path.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/sampling/placement.h"
#include "rill/replay/sampling/sample_queue.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/samplers/sampler.h"
#include "rill/storage/storage.h"
#include "rill/transforms/unit_transform.h"

namespace rill::replay_internal {

// The objects of a replay buffer, wired. Each has its own lock, or none, and
// its own thread-safety; the buffer passes calls on to them.
//
// Order of locks. A part takes no lock of another while it holds its own, but:
//   RowPatcher's, then a ticket of DrawnRows;
//   a ticket of DrawnRows, then the queue's;
//   the transforms', then the placement's (TransformStage::Forward's `finish`).
// The storage's and the sampler's are taken under any of them.
struct BufferParts {
  // `options` were checked. Errors of the parts, as ReplayBuffer::Create.
  static absl::StatusOr<std::unique_ptr<BufferParts>> Create(
      BufferOptions options);

  // Cost: that of Storage::MemoryUsage and SampleQueue::counts.
  BufferStats GetStats() const;
  // Rows that may still be drawn.
  int64_t items() const;

  const std::shared_ptr<Storage> storage;
  const std::unique_ptr<Sampler> sampler;
  const std::shared_ptr<const UnitTransform> unit_transform;
  const Clock& clock;
  const absl::Time made_at;
  // Wakes the queue's workers. Drawn batches may lie until half of `prefetch`
  // has come together, so that a caller seldom has to wake a worker. A caller
  // that waits for a batch that may not have been begun wakes them.
  WakeSignal wake;
  DrawnRows drawn_rows{[this] { wake.Notify(); }};
  std::unique_ptr<TransformStage> transforms;
  std::unique_ptr<WritePath> writes;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<SampleQueue> samples;
  std::unique_ptr<const BufferCheckpoint> checkpoint;

 private:
  explicit BufferParts(BufferOptions* options);
  absl::Status Make(BufferOptions* options);
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_BUFFER_PARTS_H_
