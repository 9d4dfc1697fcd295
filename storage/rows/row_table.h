// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_ROW_TABLE_H_
#define RILL_STORAGE_ROWS_ROW_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/slots/slot.h"
#include "rill/storage/dedup/next_rows.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// The bytes of all rows on one device and the copies to and from them. Knows
// neither rings nor locks: slots are the caller's to check and to guard.
//
// Thread-safety: Read and View may run side by side; Write excludes the
//   rows it writes and, where next() is not null, those before them.
// Device/Stream: works on a stream of its own and is complete on return, but
//   for EnqueueRead; what it is given must be complete too. The destructor
//   waits for reads that are enqueued.
// Cost: that of a row copy (device/row_copy.h); no
//   allocation once a thread has made a copy of the size.
class RowTable {
 public:
  ~RowTable();

  // The bytes are not initialised. RESOURCE_EXHAUSTED names asked and free.
  // A layout with pairs lies in host memory.
  static absl::StatusOr<std::unique_ptr<RowTable>> Create(RowLayout layout,
                                                          Device device,
                                                          MemoryKind kind);

  // The same in memory that is there: at least layout.size_bytes() of the
  // CPU's.
  static absl::StatusOr<std::unique_ptr<RowTable>> Create(
      RowLayout layout, std::shared_ptr<Buffer> buffer);

  const RowLayout& layout() const { return layout_; }
  const TensorDictSpec& spec() const { return layout_.spec(); }
  // Tensors that rows are copied from or to must lie there.
  Device device() const { return buffer_->device(); }
  // The buffer of tensors of a View, which lie in the table's own bytes.
  const Buffer* lent() const { return lent_.get(); }

  // Leaves that are not stored as such, or null. A Write that was not planned
  // there may be RESOURCE_EXHAUSTED.
  NextRows* next() const { return next_.get(); }

  // Row slots[i] -> place i, for every leaf named.
  absl::Status Read(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> leaves) const;
  // A leaf that lies in host memory as such, each row without gaps.
  bool Shows(size_t leaf) const {
    return device().is_cpu() && leaf < layout_.fields().size() &&
           layout_.fields()[leaf].width > 0;
  }
  // Calls fn(i, address) for that leaf of row slots[i], in order, for the first
  // `count` of them. Meanwhile the rows some places further on are fetched into
  // the caches; all are slots of the table.
  absl::Status Show(
      absl::Span<const Slot> slots, size_t count, size_t leaf,
      absl::FunctionRef<absl::Status(size_t, const std::byte*)> fn) const;
  // A Read of a device's rows, enqueued on `stream`, of that device; the
  // event is its end. A later Write waits for the reads of its rows, and holds
  // up no other read meanwhile. Cost: O(n) on the host; a write that
  // meets the read while it is pending sorts its rows.
  absl::StatusOr<Event> EnqueueRead(absl::Span<const Slot> slots,
                                    absl::Span<const LeafBatch> leaves,
                                    const Stream& stream) const
      ABSL_LOCKS_EXCLUDED(stream_mutex_);
  // Place i -> row slots[i]; of a slot named twice the later place wins.
  absl::Status Write(absl::Span<const Slot> slots,
                     absl::Span<const LeafBatch> leaves);

  // Rows of leaf `leaf` as a new tensor [n, ...] in host memory.
  absl::StatusOr<Tensor> ReadToHost(absl::Span<const Slot> slots,
                                    size_t leaf) const;
  // A run of slots of one lane in place, [count, ...], of lent memory
  // (Buffer::Lend). FAILED_PRECONDITION
  // names a leaf that is not stored as such.
  absl::StatusOr<TensorDict> View(SlotRange range) const;

 private:
  RowTable(RowLayout layout, std::shared_ptr<Buffer> buffer, Stream stream,
           std::unique_ptr<NextRows> next)
      : layout_(std::move(layout)),
        num_stored_(static_cast<size_t>(std::count_if(
            layout_.fields().begin(), layout_.fields().end(),
            [](const RowField& field) { return field.width > 0; }))),
        buffer_(std::move(buffer)),
        lent_(Buffer::Lend(buffer_)),
        stream_(std::move(stream)),
        next_(std::move(next)) {}

  // A read that is enqueued and was not there when it was last looked at.
  struct PendingRead {
    std::shared_ptr<const Event> end;
    std::vector<int64_t> rows;
    bool is_sorted = false;  // Ascending; at the first write that meets it.
  };
  // A row copy as a backend takes it.
  struct RowCopy {
    absl::Span<const RowColumn> columns;
    absl::Span<const int64_t> rows;
  };

  // In the thread's scratch.
  template <bool kIsWrite>
  RowCopy MakeCopy(absl::Span<const Slot> slots,
                   absl::Span<const LeafBatch> leaves) const;
  template <bool kIsWrite>
  absl::Status Copy(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> leaves) const;
  template <bool kIsWrite>
  absl::Status Run(const RowCopy& copy, const Stream& stream) const;
  void ForgetReadsThatEnded() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stream_mutex_);
  // No read of these rows is left when this returns; gives the lock up while it
  // waits.
  void AwaitReads(absl::Span<const int64_t> rows) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stream_mutex_);

  const RowLayout layout_;
  const size_t num_stored_;  // Fields that have bytes.
  const std::shared_ptr<Buffer> buffer_;
  const std::shared_ptr<Buffer> lent_;  // What views are of.
  const Stream stream_;
  const std::unique_ptr<NextRows> next_;
  // Serialises copies on a device, so that a failure of the stream is reported
  // to the call that met it. The CPU's copies do not need it.
  mutable absl::Mutex stream_mutex_;
  mutable std::vector<PendingRead> pending_ ABSL_GUARDED_BY(stream_mutex_);
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_ROW_TABLE_H_
