// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLING_SAMPLE_BATCHES_H_
#define RILL_REPLAY_SAMPLING_SAMPLE_BATCHES_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// A batch on its way out of a replay buffer has the type of how far it has
// come: it is drawn, then gathered, then placed. Thread-compatible all three.

// Its rows are chosen, and held in DrawnRows until they are gathered.
struct DrawnBatch {
  uint64_t number = 0;
  int64_t items = 0;
  uint64_t epoch = 0;  // SamplePlan::epoch.
  // WriteCounter::clears before the draw: where it is another now, the rows
  // may be gone.
  int64_t clears = 0;
  uint32_t digest = 0;  // As PlacedBatch's.
  SamplePlan plan = {};
};

// Its rows are read. The transforms work on them where they lie.
struct GatheredBatch {
  TensorDict rows = {};
};

// It lies where the buffer's options want it.
struct PlacedBatch {
  TensorDict rows = {};
  // Null: it is all there. Else a copy to `rows` is under way until then.
  std::shared_ptr<const Event> copied = nullptr;
  uint32_t digest = 0;  // DrawDigest, where SampleQueue::Options asks for it.
};

// A checksum of slot, generation and weight of each draw, and of `rows`, in
// order: what a run's log has in place of the draws
// (docs/formats/flight_log.md). Thread-safety: thread-safe.
uint32_t DrawDigest(absl::Span<const Draw> draws,
                    absl::Span<const Slot> rows = {});
// The same of slots, generations and new priorities, one a row.
uint32_t PriorityDigest(absl::Span<const Draw> rows,
                        absl::Span<const float> priorities);

// The bytes of numbers that have none between them.
template <typename T>
absl::string_view BytesOf(absl::Span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()),
          numbers.size() * sizeof(T)};
}

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLING_SAMPLE_BATCHES_H_
