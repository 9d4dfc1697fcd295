// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_WRITE_EVENT_BUILDER_H_
#define RILL_STORAGE_RING_WRITE_EVENT_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// The leaves of a spec that EventKeys name.
struct EventLeaves {
  std::vector<size_t> ends;
  std::optional<size_t> trajectory;
  std::optional<size_t> priority;
  std::optional<size_t> policy_version;

  // INVALID_ARGUMENT where a leaf of such a name has another dtype or, but for
  // ends of a group, more than one element a row; names the option and both
  // sides.
  static absl::StatusOr<EventLeaves> Find(const TensorDictSpec& spec,
                                          const EventKeys& keys);
};

// The rows of a batch [time] or [lanes, time].
struct BatchRows {
  // INVALID_ARGUMENT where the batch is neither that nor of lanes there are.
  static absl::StatusOr<BatchRows> Find(const Lanes& lanes,
                                        const TensorDict& batch,
                                        const WriteInfo& info);

  int batch_rank = 1;
  int64_t num_lanes = 1;
  int64_t steps = 0;
};

// Makes the events that a write sends to observers. Keeps its memory.
//
// Thread-safety: thread-compatible.
class WriteEventBuilder {
 public:
  // Gives a leaf's values in host memory, or a tensor that is not valid.
  using LeafSource = absl::FunctionRef<absl::StatusOr<Tensor>(size_t leaf)>;

  // The values of `rows` of a batch that is about to be written, those of
  // `read` alone.
  absl::Status FromBatch(const EventLeaves& leaves, const ValuesRead& read,
                         const BatchLeaves& batch, const BatchRows& rows);
  // After FromBatch: of each lane only the newest `kept` < rows.steps rows
  // stay, and the event tells which trajectories lost their beginning.
  void DropAllBut(int64_t kept, const BatchRows& rows);
  // The values of rows that are stored. With `written`, only those that its
  // leaves tell (ends: where it holds any of them).
  absl::Status FromStored(const EventLeaves& leaves, const ValuesRead& read,
                          int64_t num_rows, LeafSource stored,
                          const BatchLeaves* written = nullptr);
  // Gives all rows of one slot the values of the last of them. O(slots).
  void TakeLast(absl::Span<const Slot> slots);
  // No values.
  void Clear();

  // Valid until the next call of this and as long as the ranges are.
  WriteEvent Event(bool is_append, absl::Span<const SlotRange> retired,
                   absl::Span<const SlotRange> written) const;
  // The event of an append.
  WriteEvent Event(const AppendPlan& plan) const;

 private:
  absl::Status Fill(const EventLeaves& leaves, const ValuesRead& read,
                    const BatchRows& rows, LeafSource source);

  std::vector<uint8_t> ends_;
  std::vector<int64_t> trajectory_ids_;
  std::vector<double> priorities_;
  std::vector<int64_t> policy_versions_;
  std::vector<uint8_t> begins_cut_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_WRITE_EVENT_BUILDER_H_
