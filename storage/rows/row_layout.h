// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_ROW_LAYOUT_H_
#define RILL_STORAGE_ROWS_ROW_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dedup/next_pairs.h"
#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {

// The place of one leaf of row r: `width` bytes at offset + r * stride.
struct RowField {
  int64_t offset = 0;
  int64_t stride = 0;
  int64_t width = 0;
  friend bool operator==(const RowField&, const RowField&) = default;
};

// One row as it is read: the sum of its leaves.
int64_t RowBytes(const TensorDictSpec& spec);

// One side of a copy between a table and a batch: place i of leaf `leaf` is at
// data + i * stride, in memory that the table's device reaches.
struct LeafBatch {
  size_t leaf = 0;  // In the order of the table's spec.
  std::byte* data = nullptr;
  int64_t stride = 0;
  bool past_caches = false;  // See RowColumn.
};

// The place of every leaf of every slot in one block of memory: the arithmetic
// behind layout and order. A slot has a row number, its place in memory; both
// layouts are then an offset and a stride a leaf.
//
// kRows: fields are ordered by alignment, so that a record has no holes but at
//   its end. Records of at most 64 bytes are rounded up to a power of two
//   (within 1.5 times), so that none straddles a cache line. Longer ones are
//   rounded up to whole lines where that costs at most an eighth.
// kColumns: a column starts at a multiple of `column_alignment`. That is a
//   multiple of 64, or of a page where each is mapped from a file.
//
// For a pair K, next/K (dedup/next_rows.h) next/K is not stored: its field has
// width 0.
//
// Thread-safety: immutable.
class RowLayout {
 public:
  // INVALID_ARGUMENT where the bytes do not fit in int64, or a leaf has too
  // many dimensions for one more before them.
  static absl::StatusOr<RowLayout> Create(TensorDictSpec spec,
                                          const Lanes& lanes,
                                          StorageLayout layout,
                                          StorageOrder order,
                                          int64_t column_alignment = 64,
                                          std::vector<NextPair> pairs = {});

  const TensorDictSpec& spec() const { return spec_; }
  // One a leaf of the spec, in its order.
  absl::Span<const RowField> fields() const { return fields_; }
  int64_t size_bytes() const { return size_bytes_; }
  const std::vector<NextPair>& next_pairs() const { return next_pairs_; }
  // A leaf of one row; all of them; those that are stored.
  int64_t leaf_bytes(size_t leaf) const { return leaf_bytes_[leaf]; }
  int64_t row_bytes() const { return row_bytes_; }
  int64_t stored_row_bytes() const { return stored_row_bytes_; }
  const Lanes& lanes() const { return lanes_; }
  StorageLayout layout() const { return layout_; }  // Never kAuto.
  StorageOrder order() const { return order_; }

  // Row numbers. Where row_is_slot() a slot's number is its row's.
  bool row_is_slot() const { return row_is_slot_; }
  int64_t RowOf(Slot slot) const {
    return row_is_slot_
               ? slot
               : lanes_.PositionOf(slot) * lanes_.count + lanes_.LaneOf(slot);
  }
  // rows[i] = RowOf(slots[i]). Cost: a division a slot, none if row_is_slot().
  void RowsOf(absl::Span<const Slot> slots, int64_t* rows) const;
  // From a row to that of the next position of its lane.
  int64_t row_step() const { return row_is_slot_ ? 1 : lanes_.count; }

 private:
  RowLayout() = default;
  absl::Status PlaceRecords();
  absl::Status PlaceColumns(int64_t alignment);

  TensorDictSpec spec_;
  Lanes lanes_;
  StorageLayout layout_ = StorageLayout::kRows;
  StorageOrder order_ = StorageOrder::kLaneMajor;
  bool row_is_slot_ = true;
  std::vector<RowField> fields_;
  std::vector<NextPair> next_pairs_;
  std::vector<int64_t> leaf_bytes_;
  int64_t row_bytes_ = 0;
  int64_t stored_row_bytes_ = 0;
  int64_t size_bytes_ = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_ROW_LAYOUT_H_
