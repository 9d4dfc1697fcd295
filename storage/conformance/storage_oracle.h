// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CONFORMANCE_STORAGE_ORACLE_H_
#define RILL_STORAGE_CONFORMANCE_STORAGE_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The expected content of a storage of conformance rows, in the plainest way:
// the id of each leaf in every slot, written one step at a time.
// Thread-safety: thread-compatible.
class StorageOracle {
 public:
  explicit StorageOracle(const Lanes& lanes);

  const Lanes& lanes() const { return lanes_; }

  // A batch [num_lanes, steps] of rows `ids` to lanes [first_lane, ...).
  void Extend(int64_t first_lane, int64_t num_lanes, int64_t steps,
              absl::Span<const int64_t> ids);
  // Slots are live.
  void WriteAt(absl::Span<const Slot> slots, absl::Span<const size_t> leaves,
               absl::Span<const int64_t> ids);
  void Clear();
  // The newest rows of each lane, in lanes of `capacity`.
  StorageOracle WithLaneCapacity(int64_t capacity) const;

  bool IsLive(Slot slot) const { return ids_[slot].has_value(); }
  // Lane after lane, oldest first.
  std::vector<Slot> LiveSlots() const;
  const std::vector<Cursor>& cursors() const { return cursors_; }
  // The id of a leaf of a live slot.
  int64_t Id(Slot slot, size_t leaf) const { return (*ids_[slot])[leaf]; }
  // The rows that must be read at live slots.
  TensorDict Rows(absl::Span<const Slot> slots) const;

 private:
  Lanes lanes_;
  std::vector<Cursor> cursors_;
  std::vector<std::optional<std::vector<int64_t>>> ids_;  // By slot and leaf.
};

}  // namespace rill

#endif  // RILL_STORAGE_CONFORMANCE_STORAGE_ORACLE_H_
