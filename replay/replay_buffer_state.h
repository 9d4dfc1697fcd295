// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_REPLAY_BUFFER_STATE_H_
#define RILL_REPLAY_REPLAY_BUFFER_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/sink.h"
#include "rill/replay/parts/buffer_checkpoint.h"
#include "rill/replay/parts/buffer_parts.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// ReplayBuffer's body: its parts, and the pause. For its own sources and
// RunCheckpoint's.
struct ReplayBuffer::State {
  absl::Status InsertTransform(std::optional<int64_t> place,
                               std::unique_ptr<BatchTransform> transform)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status CheckBatchSize() const;
  // The parts of a CapturedSample.
  absl::Status CheckCanCapture() const;
  // `sample` hands out so many items: with the rate limiter's permit, and no
  // Save or Clear beside it.
  absl::Status WithPermit(int64_t items,
                          absl::FunctionRef<absl::Status()> sample)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status SampleInto(int64_t items, replay_internal::PlacedBatch* out)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status SampleAndWait(int64_t items, TensorDict* out)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status UpdatePriorities(absl::Span<const Draw> rows,
                                absl::Span<const float> priorities)
      ABSL_LOCKS_EXCLUDED(pause_mutex);
  absl::Status Save(absl::string_view caller, const std::string& directory,
                    replay_internal::BufferCheckpoint::Rows rows)
      ABSL_LOCKS_EXCLUDED(pause_mutex);

  // To Options::recorder; nothing where there is none. `digest` is
  // PlacedBatch's; `slots` are empty where `values` name the rows.
  absl::Status NoteWrite(const WriteInfo& info, const TensorDict& batch) const;
  absl::Status NoteDraw(int64_t items, uint32_t digest) const;
  absl::Status NotePatch(int64_t rows, const TensorDict& values,
                         absl::Span<const Slot> slots) const;
  absl::Status Note(Decision::Kind kind,
                    absl::Span<const int64_t> numbers) const;

  DecisionLog* recorder = nullptr;
  int64_t part = -1;  // Of the recorder's.
  // Updates of priorities on the host. Each kCountedUpdate-th is recorded with
  // PriorityCounts, from the first; they take longer than all else of it.
  static constexpr int64_t kCountedUpdate = 8;
  std::atomic<int64_t> recorded_updates = 0;
  std::unique_ptr<replay_internal::BufferParts> parts;
  // Shared by calls; held alone by what needs a buffer at rest (Save, Clear,
  // ReadAll, InsertTransform). Taken before every lock of the parts, and never
  // while a call waits for the rate limiter.
  absl::Mutex pause_mutex;
  absl::once_flag batch_size_warning;
};

}  // namespace rill

#endif  // RILL_REPLAY_REPLAY_BUFFER_STATE_H_
