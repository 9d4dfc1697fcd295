// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/read_ahead.h"

#include <sys/resource.h>

#include <algorithm>

#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {
namespace {

// Major faults of the calling thread: pages that it had to wait for.
int64_t MajorFaults() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

}  // namespace

ReadAhead::ReadAhead(const RowTable* table,
                     std::shared_ptr<const AddressRange> range)
    : table_(table), range_(std::move(range)) {
  range_->Advise(0, range_->size_bytes(), AddressRange::Hint::kRandom);
  const absl::Span<const RowField> fields = layout().fields();
  if (layout().layout() == StorageLayout::kColumns) {
    pieces_.assign(fields.begin(), fields.end());
  } else if (!fields.empty()) {
    const int64_t stride = fields[0].stride;
    pieces_ = {{.offset = 0, .stride = stride, .width = stride}};
  }
}

absl::Status ReadAhead::Read(absl::Span<const Slot> slots,
                             absl::Span<const Slot> batch,
                             absl::Span<const LeafBatch> leaves) const {
  thread_local int turn = 0;
  const int left = from_disk_.load(std::memory_order_relaxed);
  // Rows are in memory: one read in kPeriod of a thread pays for the check.
  if (left == 0 && ++turn % kPeriod != 0) return table_->Read(slots, leaves);
  if (left > 0 && batch.size() > 1) {
    for (const RowField& piece : pieces_) Announce(batch.subspan(1), piece);
  }
  const int64_t before = MajorFaults();
  const absl::Status status = table_->Read(slots, leaves);
  // Announcements stop after kPeriod batches in a row without a fault. Later
  // pieces of a batch, which come without it, do not count.
  if (MajorFaults() != before) {
    from_disk_.store(kPeriod, std::memory_order_relaxed);
  } else if (left > 0 && !batch.empty()) {
    from_disk_.store(left - 1, std::memory_order_relaxed);
  }
  return status;
}

void ReadAhead::BeforeRows(absl::Span<const Slot> slots) const {
  if (from_disk_.load(std::memory_order_relaxed) == 0) return;
  for (const RowField& piece : pieces_) Announce(slots, piece);
}

// Announces runs of rows that lie one behind the other, and rows on one page,
// once.
void ReadAhead::Announce(absl::Span<const Slot> slots,
                         const RowField& piece) const {
  if (piece.width == 0) return;
  const int64_t page = AddressRange::PageBytes();
  int64_t begin = 0;
  int64_t end = 0;
  for (const Slot slot : slots) {
    const int64_t at = piece.offset + layout().RowOf(slot) * piece.stride;
    if (at >= begin && at <= end) {
      end = std::max(end, (at + piece.width + page - 1) & -page);
      continue;
    }
    range_->Advise(begin, end - begin, AddressRange::Hint::kSoon);
    begin = at & -page;
    end = (at + piece.width + page - 1) & -page;
  }
  range_->Advise(begin, end - begin, AddressRange::Hint::kSoon);
}

void ReadAhead::BeforeRuns(absl::Span<const SlotRange> runs) const {
  for (const SlotRange& run : runs) {
    const int64_t first = layout().RowOf(run.first);
    const int64_t last = layout().RowOf(run.first + run.count - 1);
    for (const RowField& piece : pieces_) {
      const int64_t begin = piece.offset + first * piece.stride;
      const int64_t end = piece.offset + (last + 1) * piece.stride;
      // [from, to) are the blocks of kAheadBytes that begin within the run. The
      // blocks behind those are announced, so that each block is announced
      // once, while the one before it is written.
      const int64_t from = (begin + kAheadBytes - 1) & -kAheadBytes;
      if (from >= end) continue;
      const int64_t to = ((end - 1) & -kAheadBytes) + kAheadBytes;
      range_->Advise(from + kAheadBytes, to - from, AddressRange::Hint::kSoon);
    }
  }
}

}  // namespace rill::storage_internal
