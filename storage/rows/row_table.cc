// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/row_table.h"

#include <algorithm>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/row_copy.h"
#include "rill/tensors/dtype.h"

namespace rill::storage_internal {
namespace {

// Memory for a copy, kept so that a thread's copies stop allocating.
struct Scratch {
  std::vector<RowColumn> columns;
  std::vector<int64_t> rows;
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Create(RowLayout layout,
                                                           Device device,
                                                           MemoryKind kind) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                        Buffer::Allocate(layout.size_bytes(), device, kind));
  return Create(std::move(layout), std::move(buffer));
}

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Create(
    RowLayout layout, std::shared_ptr<Buffer> buffer) {
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(buffer->device()));
  std::unique_ptr<NextRows> next;
  if (!layout.next_pairs().empty()) {
    RILL_ASSIGN_OR_RETURN(next, NextRows::Create(layout, buffer->data()));
  }
  return std::unique_ptr<RowTable>(
      new RowTable(std::move(layout), std::move(buffer), std::move(stream),
                   std::move(next)));
}

RowTable::~RowTable() {
  for (const PendingRead& read : pending_) {
    read.end->Synchronize().IgnoreError();
  }
}

template <bool kIsWrite>
RowTable::RowCopy RowTable::MakeCopy(absl::Span<const Slot> slots,
                                     absl::Span<const LeafBatch> leaves) const {
  Scratch& scratch = ThreadScratch();
  std::vector<RowColumn>& columns = scratch.columns;
  columns.clear();
  for (const LeafBatch& leaf : leaves) {
    const RowField& field = layout_.fields()[leaf.leaf];
    if (field.width == 0) continue;
    columns.push_back({.table = buffer_->data() + field.offset,
                       .table_stride = field.stride,
                       .batch = leaf.data,
                       .batch_stride = leaf.stride,
                       .width = field.width,
                       .past_caches = leaf.past_caches});
  }
  // No byte of a row has to stay, so the copy may overwrite the padding too and
  // store whole cache lines.
  if (kIsWrite && columns.size() == num_stored_) {
    for (RowColumn& column : columns) column.whole_rows = true;
  }
  absl::Span<const int64_t> rows = slots;
  if (!layout_.row_is_slot()) {
    scratch.rows.resize(slots.size());
    layout_.RowsOf(slots, scratch.rows.data());
    rows = scratch.rows;
  }
  return {columns, rows};
}

template <bool kIsWrite>
absl::Status RowTable::Copy(absl::Span<const Slot> slots,
                            absl::Span<const LeafBatch> leaves) const {
  if (slots.empty()) return absl::OkStatus();
  const RowCopy copy = MakeCopy<kIsWrite>(slots, leaves);
  if (device().is_cpu()) return Run<kIsWrite>(copy, stream_);
  absl::MutexLock lock(&stream_mutex_);
  if (kIsWrite) AwaitReads(copy.rows);
  RILL_RETURN_IF_ERROR(Run<kIsWrite>(copy, stream_));
  return stream_.Synchronize();
}

template <bool kIsWrite>
absl::Status RowTable::Run(const RowCopy& copy, const Stream& stream) const {
  Backend* const backend = stream.backend();
  const int index = stream.device().index;
  return kIsWrite ? backend->ScatterRows(index, copy.columns, copy.rows,
                                         stream.handle())
                  : backend->GatherRows(index, copy.columns, copy.rows,
                                        stream.handle());
}

// The event of a read that failed tells its error, not this call.
void RowTable::ForgetReadsThatEnded() const {
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(),
                                [](const PendingRead& read) {
                                  const auto has_ended = read.end->IsComplete();
                                  return !has_ended.ok() || *has_ended;
                                }),
                 pending_.end());
}

void RowTable::AwaitReads(absl::Span<const int64_t> rows) const {
  const auto reads_some = [rows](PendingRead& read) {
    if (!read.is_sorted) std::sort(read.rows.begin(), read.rows.end());
    read.is_sorted = true;
    return std::any_of(rows.begin(), rows.end(), [&read](int64_t row) {
      return std::binary_search(read.rows.begin(), read.rows.end(), row);
    });
  };
  for (;;) {
    ForgetReadsThatEnded();
    // Looks anew after each wait: while the lock is free others enqueue reads,
    // and the list may move. The event is shared so that it outlives its entry.
    const auto found =
        std::find_if(pending_.begin(), pending_.end(), reads_some);
    if (found == pending_.end()) return;
    const std::shared_ptr<const Event> end = found->end;
    stream_mutex_.Unlock();
    end->Synchronize().IgnoreError();
    stream_mutex_.Lock();
  }
}

absl::StatusOr<Event> RowTable::EnqueueRead(absl::Span<const Slot> slots,
                                            absl::Span<const LeafBatch> leaves,
                                            const Stream& stream) const {
  const RowCopy copy = MakeCopy</*kIsWrite=*/false>(slots, leaves);
  std::vector<int64_t> rows(copy.rows.begin(), copy.rows.end());
  absl::MutexLock lock(&stream_mutex_);
  ForgetReadsThatEnded();
  absl::Status status =
      slots.empty() ? absl::OkStatus() : Run</*kIsWrite=*/false>(copy, stream);
  // One event is the caller's, who may destroy it; writes wait for the other.
  absl::StatusOr<Event> end = Event::Record(stream);
  absl::StatusOr<Event> end_for_writes = Event::Record(stream);
  status.Update(end.status());
  status.Update(end_for_writes.status());
  if (!status.ok()) {
    // Nobody could tell when what was enqueued has ended.
    stream.Synchronize().IgnoreError();
    return status;
  }
  pending_.push_back({std::make_shared<const Event>(*std::move(end_for_writes)),
                      std::move(rows)});
  return end;
}

absl::Status RowTable::Read(absl::Span<const Slot> slots,
                            absl::Span<const LeafBatch> leaves) const {
  RILL_RETURN_IF_ERROR(Copy</*kIsWrite=*/false>(slots, leaves));
  if (next_ != nullptr) next_->Read(slots, leaves);
  return absl::OkStatus();
}

absl::Status RowTable::Show(
    absl::Span<const Slot> slots, size_t count, size_t leaf,
    absl::FunctionRef<absl::Status(size_t, const std::byte*)> fn) const {
  // The memory is to be busy while a row is worked on. Behind so many bytes the
  // processor reads ahead by itself.
  constexpr size_t kRowsAhead = 4;
  constexpr int64_t kAheadBytes = 2 << 10;
  constexpr int64_t kLineBytes = 64;
  const RowField& field = layout_.fields()[leaf];
  const std::byte* const table = buffer_->data() + field.offset;
  const int64_t ahead = std::min(field.width, kAheadBytes);
  for (size_t i = 0; i < count; ++i) {
    if (i + kRowsAhead < slots.size()) {
      const std::byte* const row =
          table + layout_.RowOf(slots[i + kRowsAhead]) * field.stride;
      for (int64_t at = 0; at < ahead; at += kLineBytes) {
        __builtin_prefetch(row + at, 0, 2);
      }
    }
    RILL_RETURN_IF_ERROR(fn(i, table + layout_.RowOf(slots[i]) * field.stride));
  }
  return absl::OkStatus();
}

absl::Status RowTable::Write(absl::Span<const Slot> slots,
                             absl::Span<const LeafBatch> leaves) {
  if (next_ == nullptr) return Copy</*kIsWrite=*/true>(slots, leaves);
  // Rows whose next/K is about to be overwritten get a copy of their own first.
  // After the copy rows that are equal share again.
  RILL_RETURN_IF_ERROR(next_->BeforeWrite(slots, leaves));
  RILL_RETURN_IF_ERROR(Copy</*kIsWrite=*/true>(slots, leaves));
  return next_->AfterWrite(slots, leaves);
}

absl::StatusOr<Tensor> RowTable::ReadToHost(absl::Span<const Slot> slots,
                                            size_t leaf) const {
  const LeafSpec& spec = this->spec().leaves()[leaf].spec;
  const Shape rows = {static_cast<int64_t>(slots.size())};
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::Empty(spec.dtype, rows.Concat(spec.shape),
                    {device(), device().is_cpu() ? MemoryKind::kPageable
                                                 : MemoryKind::kDevice}));
  const LeafBatch batch = {leaf, tensor.raw_data(), layout_.leaf_bytes(leaf)};
  RILL_RETURN_IF_ERROR(Read(slots, absl::MakeConstSpan(&batch, 1)));
  return tensor.To(Device::Cpu());
}

absl::StatusOr<TensorDict> RowTable::View(SlotRange range) const {
  if (next_ != nullptr) {
    return FailedPrecondition(
        "Storage::Lease: leaf \"",
        spec().leaves()[layout_.next_pairs()[0].next].key,
        "\": got dedup_next, which keeps it in other rows, want all leaves in "
        "place; Read the rows, or create the storage without dedup_next");
  }
  const Shape rows = {range.count};
  TensorDict view(rows);
  for (size_t i = 0; i < spec().leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = spec().leaves()[i];
    const RowField& field = layout_.fields()[i];
    const Shape shape = rows.Concat(leaf.spec.shape);
    absl::InlinedVector<int64_t, Shape::kMaxRank> strides(shape.rank());
    int64_t stride = DTypeSize(leaf.spec.dtype);
    for (int d = shape.rank() - 1; d > 0; --d) {
      strides[d] = stride;
      stride *= shape[d];
    }
    strides[0] = field.stride * layout_.row_step();
    const int64_t first = range.count == 0 ? 0 : layout_.RowOf(range.first);
    RILL_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::View(lent_, leaf.spec.dtype, shape,
                     field.offset + first * field.stride, strides));
    RILL_RETURN_IF_ERROR(view.Set(leaf.key, std::move(tensor)));
  }
  return view;
}

}  // namespace rill::storage_internal
