// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_READ_AHEAD_H_
#define RILL_STORAGE_ROWS_READ_AHEAD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/sparse_file.h"
#include "rill/slots/slot.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/rows/row_table.h"

namespace rill::storage_internal {

// Rows in files that memory may hold in part only. The kernel learns of a whole
// batch at once, where faults would come one page after the other.
//
// While batches are found in memory a Read is the table's; one in kPeriod
// counts the major faults that it took. Where there were any, and at first, the
// rows of the next kPeriod batches are announced to the kernel before they are
// copied. The first row of each batch is left out. So a fault a batch still
// shows whether rows come from the disk.
//
// Appends go forward, a page at a time if nobody said so: a run of rows that
// comes to the next kAheadBytes of its file has those behind them announced.
//
// Thread-safety: thread-safe; slots are the caller's to guard, as RowTable's.
// Cost: rows in memory: two system calls in kPeriod reads; else one a row and
//   file.
class ReadAhead {
 public:
  // Both must outlive this. `range` is where the table's layout begins; it is
  // advised that reads are random.
  ReadAhead(const RowTable* table, std::shared_ptr<const AddressRange> range);

  // RowTable::Read of the first rows of `batch`; of later ones where that is
  // empty.
  absl::Status Read(absl::Span<const Slot> slots, absl::Span<const Slot> batch,
                    absl::Span<const LeafBatch> leaves) const;

  // Rows are about to be written here: some of anywhere, and of those a window.
  void BeforeRows(absl::Span<const Slot> slots) const;
  void BeforeRuns(absl::Span<const SlotRange> runs) const;

 private:
  static constexpr int kPeriod = 16;
  static constexpr int64_t kAheadBytes = int64_t{256} << 10;

  void Announce(absl::Span<const Slot> slots, const RowField& piece) const;

  const RowLayout& layout() const { return table_->layout(); }

  const RowTable* const table_;
  const std::shared_ptr<const AddressRange> range_;
  // The pieces of a row: one record, or each leaf.
  std::vector<RowField> pieces_;
  // Batches that will still be announced; 0: rows are in memory.
  mutable std::atomic<int> from_disk_{kPeriod};
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_READ_AHEAD_H_
