// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DEDUP_NEXT_ROWS_H_
#define RILL_STORAGE_DEDUP_NEXT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/dedup/cell_pool.h"
#include "rill/storage/dedup/next_pairs.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

// Adds the slot before each of `ranges` in its lane's ring (before the first
// one, the last). The ranges, sorted and apart, stay so; there are at most
// kRangesWithPredecessors times as many.
inline constexpr size_t kRangesWithPredecessors = 3;
void AddPredecessors(const Lanes& lanes, std::vector<SlotRange>* ranges);

// The leaves next/K of a table that are not stored, as K of the row behind has
// the same bytes, or else in a copy of the row's own.
//
// Bytes alone decide: a row shares where its next/K equals K of the next slot
// in its lane's ring, whatever flags, cursors or the age of rows say. Before
// that K changes, the row gets its own copy. So a row reads as it was written
// at ends, at the cursor, between lanes and around the ring. An appended row
// shares with the next row of the same batch. The newest row of a lane has its
// own copy until its successor comes and is equal. So has, for as long, the
// last row of a window.
//
// Readers beside a writer: a read of slot s touches row s, the number that says
// where its next/K lies, K of the slot behind, and one cell. All of these
// change only in a write to s or to the slot behind it. The cell belongs to s
// alone: such a write takes it, and such a write gives it back. So a write's
// windows (epoch_windows.h) name the slots that are written and those before
// them (AddPredecessors). Then whatever a reader of s touches changes only in
// windows that have s, and that no reader of s is inside. Each call of Write is
// one window, and after it every row is whole: a row whose successor comes in a
// later window has its own copy meanwhile.
//
// Thread-safety: Read and memory_bytes may run beside anything, where windows
//   are as above; all else is one writer's.
// Cost: 4 bytes a slot and pair, and the cells; Read O(slots); a write
//   O(slots) and one comparison of a batch's next/K with its K. No allocation
//   once the pool is as large as it gets.
class NextRows {
 public:
  // Serves the pairs of `layout`, whose rows lie at `rows`. RESOURCE_EXHAUSTED
  // names asked and free bytes.
  static absl::StatusOr<std::unique_ptr<NextRows>> Create(
      const RowLayout& layout, std::byte* rows);

  // Step s of lane l of a leaf at data + l * lane_stride + s * step_stride.
  struct Steps {
    const std::byte* data = nullptr;
    int64_t lane_stride = 0;
    int64_t step_stride = 0;
  };
  // Makes room for a write of whole rows, all at once: `slots` are those of
  // [lanes, steps], the steps of a lane one after the other in its ring. The
  // next num_lanes * steps rows written are those. RESOURCE_EXHAUSTED changes
  // nothing.
  absl::Status PlanAppend(absl::Span<const Slot> slots, int64_t num_lanes,
                          int64_t steps,
                          absl::FunctionRef<Steps(size_t leaf)> batch);
  // The same for rows written to slots that hold some already, with a part of
  // the leaves.
  absl::Status PlanOverwrite(absl::Span<const Slot> slots,
                             absl::FunctionRef<bool(size_t leaf)> has_leaf);

  // Around the copy of stored leaves: place i -> row slots[i]; of a slot that
  // is named twice the later place wins. Fail only without a plan, with
  // RESOURCE_EXHAUSTED; rows may be damaged then.
  absl::Status BeforeWrite(absl::Span<const Slot> slots,
                           absl::Span<const LeafBatch> leaves);
  absl::Status AfterWrite(absl::Span<const Slot> slots,
                          absl::Span<const LeafBatch> leaves);

  // Row slots[i] -> place i, of those leaves that are not stored.
  void Read(absl::Span<const Slot> slots,
            absl::Span<const LeafBatch> leaves) const;

  // No row is live, and nobody reads.
  void Clear();

  // Bytes of numbers and cells, and how much less that is than the leaves.
  int64_t memory_bytes() const;
  int64_t saved_bytes() const;

 private:
  // The place of a row's next/K: a cell (>= 0), or
  enum Place : int32_t {
    kInSuccessor = -1,
    kNowhere = -2,  // The slot was never written.
    kToCome = -3,   // K is there, next/K follows within the same write.
  };
  struct Pair {
    size_t leaf = 0;
    size_t next = 0;
    int64_t width = 0;
    RowField field = {};  // Of `leaf`.
    std::shared_ptr<Buffer> buffer = nullptr;
    int32_t* places = nullptr;  // In `buffer`, one a slot.
    std::unique_ptr<CellPool> cells = nullptr;
    // One for each row of an append, in order: K of the next row is the same.
    std::vector<uint8_t> is_shared = {};
  };

  NextRows(const RowLayout& layout, std::byte* rows)
      : layout_(layout), lanes_(layout.lanes()), rows_(rows) {}

  Slot SlotAfter(Slot slot) const;
  Slot SlotBefore(Slot slot) const;
  std::byte* StoredAt(const Pair& pair, Slot slot) const {
    return rows_ + pair.field.offset + layout_.RowOf(slot) * pair.field.stride;
  }
  // Gives a row a copy of its own of `value`.
  absl::Status Own(Slot slot, const std::byte* value, Pair* pair);
  // Has it share, and gives its cell back if it has one.
  void Share(Slot slot, Pair* pair);
  absl::Status PlaceNext(absl::Span<const Slot> slots, const LeafBatch& values,
                         Pair* pair);

  const RowLayout layout_;
  const Lanes lanes_;
  std::byte* const rows_;
  std::vector<Pair> pairs_;
  // Rows of an append that are still to be written, and that were.
  size_t planned_ = 0;
  size_t done_ = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DEDUP_NEXT_ROWS_H_
