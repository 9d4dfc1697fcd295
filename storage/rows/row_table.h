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
#include "rill/device/staging/staging_ring.h"
#include "rill/device/stream.h"
#include "rill/slots/slot.h"
#include "rill/storage/dedup/next_rows.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/device_order.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
class StreamUploads;
struct ReadGraph;
}  // namespace rill

namespace rill::storage_internal {

// The bytes of all rows on one device and the copies to and from them. Knows
// neither rings nor locks: slots are the caller's to check and to guard.
//
// Thread-safety: Read and View may run side by side; Write excludes the
//   rows it writes and, where next() is not null, those before them. One
//   EnqueueWrite at a time.
// Device/Stream: works on a stream of its own and is complete on return, but
//   for EnqueueRead and EnqueueWrite; what it is given must be complete too.
//   Each copy sees the writes before it. The destructor waits for what is
//   enqueued. A write that fails after EnqueueWrite returned is the error of
//   the next PrepareWrite and of each read or View of its rows.
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
  // event is its end. A write of its rows waits for it on the device. Cost:
  // O(n) on the host.
  absl::StatusOr<Event> EnqueueRead(absl::Span<const Slot> slots,
                                    absl::Span<const LeafBatch> leaves,
                                    const Stream& stream) const
      ABSL_LOCKS_EXCLUDED(stream_mutex_);
  // Several of these in one launch, on uploads->stream() behind what `uploads`
  // has to send. Each takes its leaves of `leaves`, which stand there in turn,
  // or none where a leaf is shown. `launch` enqueues what reads the shown ones.
  // After an error the stream was waited for.
  struct ListRead {
    absl::Span<const Slot> slots;
    size_t num_leaves = 0;
    // Gets where the device has the numbers of the rows, of which a leaf is
    // shown (ViewLeaf), unless it is null.
    const int64_t** shown_rows = nullptr;
  };
  // With `graph`, as RowReader::EnqueueReadsInto has it.
  absl::Status EnqueueReads(absl::Span<const ListRead> lists,
                            absl::Span<const LeafBatch> leaves,
                            StreamUploads* uploads,
                            absl::FunctionRef<absl::Status()> launch,
                            ReadGraph* graph) const
      ABSL_LOCKS_EXCLUDED(stream_mutex_);
  // Leaf `leaf` of `count` rows in place: `row` and each `step` rows behind the
  // one before.
  absl::StatusOr<Tensor> ViewLeaf(size_t leaf, int64_t row, int64_t step,
                                  int64_t count) const;
  // Place i -> row slots[i]; of a slot named twice the later place wins. For
  // rows in host memory.
  absl::Status Write(absl::Span<const Slot> slots,
                     absl::Span<const LeafBatch> leaves);

  // A Write to a device's rows, enqueued. Leaves are [n, ...] or, with
  // `batch_rank` 2, [lanes, time, ...], without gaps between rows.
  //
  // Host memory is copied to pinned memory before this returns, in parts that
  // go on on a stream of the table's; some threads share a large part. The
  // kernel that places the rows reads small parts from there. Leaves on the
  // device have their values at this point of the thread's CurrentStream, which
  // places them then; they are held until that is done.
  //
  // Waits only where the pinned memory is all in use. PrepareWrite has been
  // called for these leaves.
  absl::Status EnqueueWrite(absl::Span<const Slot> slots,
                            absl::Span<const BatchLeaf> leaves, int batch_rank)
      ABSL_LOCKS_EXCLUDED(stream_mutex_);
  // The memory that EnqueueWrite of `count` rows needs, and the error of a
  // write that failed meanwhile.
  absl::Status PrepareWrite(int64_t count, absl::Span<const BatchLeaf> leaves)
      ABSL_LOCKS_EXCLUDED(stream_mutex_);

  // Blocks the host until no write is under way; the error that the next
  // PrepareWrite would give.
  absl::Status AwaitWrites() const ABSL_LOCKS_EXCLUDED(stream_mutex_);

  // Rows of leaf `leaf` as a new tensor [n, ...] in host memory.
  absl::StatusOr<Tensor> ReadToHost(absl::Span<const Slot> slots,
                                    size_t leaf) const;
  // A run of slots of one lane in place, [count, ...], of lent memory
  // (Buffer::Lend), behind the writes so far. FAILED_PRECONDITION names a leaf
  // that is not stored as such.
  absl::StatusOr<TensorDict> View(SlotRange range) const;

 private:
  RowTable(RowLayout layout, std::shared_ptr<Buffer> buffer,
           std::unique_ptr<DeviceOrder> order, std::unique_ptr<NextRows> next);

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
  absl::Status Run(const RowCopy& copy, const Stream& stream) const;
  // Rows [first, first + slots.size()) of the leaves.
  absl::Status EnqueuePart(absl::Span<const Slot> slots,
                           absl::Span<const BatchLeaf> leaves, int row_dim,
                           int64_t first, const Stream& stream,
                           std::vector<Tensor> held)
      ABSL_LOCKS_EXCLUDED(stream_mutex_);
  // Bytes of pinned memory for `count` rows of the leaves in host memory.
  int64_t StagedBytes(absl::Span<const BatchLeaf> leaves, int64_t count) const;
  // So many rows of the leaves are one part.
  int64_t PartRows(absl::Span<const BatchLeaf> leaves, int64_t count) const;

  const RowLayout layout_;
  const size_t num_stored_;  // Fields that have bytes.
  const std::shared_ptr<Buffer> buffer_;
  const std::shared_ptr<Buffer> lent_;  // What views are of.
  const std::unique_ptr<NextRows> next_;
  // A device's copies are enqueued one at a time, so that their order is one.
  mutable absl::Mutex stream_mutex_;
  const std::unique_ptr<DeviceOrder> order_ ABSL_PT_GUARDED_BY(stream_mutex_);
  StagingRing staging_;  // Of EnqueueWrite.
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_ROW_TABLE_H_
