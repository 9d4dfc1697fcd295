// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/row_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "rill/base/parallel_for.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/device/row_copy.h"
#include "rill/storage/rows/gather_lists.h"
#include "rill/tensors/dtype.h"

namespace rill::storage_internal {
namespace {

// Memory for a copy, kept so that a thread's copies stop allocating.
struct Scratch {
  std::vector<RowColumn> columns;
  std::vector<int64_t> rows;
  std::vector<LeafBatch> places;
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
  std::unique_ptr<DeviceOrder> order;
  if (!buffer->device().is_cpu()) {
    RILL_ASSIGN_OR_RETURN(order, DeviceOrder::Create(buffer->device()));
  }
  std::unique_ptr<NextRows> next;
  if (!layout.next_pairs().empty()) {
    RILL_ASSIGN_OR_RETURN(next, NextRows::Create(layout, buffer->data()));
  }
  return std::unique_ptr<RowTable>(new RowTable(
      std::move(layout), std::move(buffer), std::move(order), std::move(next)));
}

RowTable::RowTable(RowLayout layout, std::shared_ptr<Buffer> buffer,
                   std::unique_ptr<DeviceOrder> order,
                   std::unique_ptr<NextRows> next)
    : layout_(std::move(layout)),
      num_stored_(static_cast<size_t>(std::count_if(
          layout_.fields().begin(), layout_.fields().end(),
          [](const RowField& field) { return field.width > 0; }))),
      buffer_(std::move(buffer)),
      lent_(Buffer::Lend(buffer_)),
      next_(std::move(next)),
      order_(std::move(order)),
      staging_(buffer_->device()) {}

RowTable::~RowTable() = default;

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
absl::Status RowTable::Run(const RowCopy& copy, const Stream& stream) const {
  Backend* const backend = stream.backend();
  const int index = stream.device().index;
  return kIsWrite ? backend->ScatterRows(index, copy.columns, copy.rows,
                                         stream.handle())
                  : backend->GatherRows(index, copy.columns, copy.rows,
                                        stream.handle());
}

absl::StatusOr<Event> RowTable::EnqueueRead(absl::Span<const Slot> slots,
                                            absl::Span<const LeafBatch> leaves,
                                            const Stream& stream) const {
  const RowCopy copy = MakeCopy</*kIsWrite=*/false>(slots, leaves);
  absl::MutexLock lock(&stream_mutex_);
  RILL_RETURN_IF_ERROR(order_->CheckNotLost(copy.rows));
  RILL_RETURN_IF_ERROR(order_->BeginRead(stream));
  if (!slots.empty()) {
    if (absl::Status status = Run</*kIsWrite=*/false>(copy, stream);
        !status.ok()) {
      stream.Synchronize().IgnoreError();
      return status;
    }
  }
  return order_->EndRead(stream, copy.rows);
}

absl::Status RowTable::EnqueueReads(absl::Span<const ListRead> lists,
                                    absl::Span<const LeafBatch> leaves,
                                    StreamUploads* uploads,
                                    absl::FunctionRef<absl::Status()> launch,
                                    ReadGraph* graph) const {
  GatherLists gather(layout_.lanes().num_slots(), uploads);
  if (graph != nullptr) {
    RILL_RETURN_IF_ERROR(gather.SetGraph(graph, buffer_));
  }
  for (const ListRead& list : lists) {
    const RowCopy copy =
        MakeCopy</*kIsWrite=*/false>(list.slots, leaves.first(list.num_leaves));
    leaves.remove_prefix(list.num_leaves);
    if (list.shown_rows == nullptr && copy.columns.empty()) continue;
    RILL_ASSIGN_OR_RETURN(const int64_t* const rows, gather.AddRows(copy.rows));
    if (list.shown_rows != nullptr) {
      *list.shown_rows = rows;
    } else {
      gather.Add(copy.columns, rows, std::ssize(copy.rows));
    }
  }
  absl::MutexLock lock(&stream_mutex_);
  RILL_RETURN_IF_ERROR(order_->CheckNotLost(gather.rows()));
  RILL_RETURN_IF_ERROR(order_->BeginRead(gather.stream()));
  const absl::Status status = gather.Launch(launch);
  if (!status.ok()) {
    gather.stream().Synchronize().IgnoreError();
    return status;
  }
  return order_->EndRead(gather.stream(), gather.rows()).status();
}

// --- Writes to a device ------------------------------------------------------

namespace {

// A part of a write is a quarter of it within these bounds: the device copies
// one while the host fills the next.
constexpr int64_t kMinPartBytes = int64_t{2} << 20;
constexpr int64_t kMaxPartBytes = StagingRing::kMaxBytes / 2;
// One thread fills pinned memory at a fifth of the rate at which a GPU copies
// from there. Starting one costs as much as copying some 200 KiB.
constexpr int64_t kThreadBytes = int64_t{1} << 20;
constexpr int kMaxThreads = 4;
// Up to here a copy costs more than what the kernel that places the rows takes
// to read them from host memory.
constexpr int64_t kMaxDirectBytes = int64_t{64} << 10;
// Columns of a part begin on cache lines.
constexpr int64_t kColumnAlignment = 64;

int64_t Aligned(int64_t bytes) {
  return (bytes + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
}

bool IsStaged(const BatchLeaf& leaf) { return leaf.ready->is_host(); }

// The process has other things to do too.
int PackThreads() {
  static const int threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1,
                 kMaxThreads);
  return threads;
}

void PackRows(const std::byte* from, int64_t stride, int64_t width,
              int64_t count, std::byte* to) {
  if (stride == width) {
    std::memcpy(to, from, static_cast<size_t>(width * count));
    return;
  }
  for (int64_t i = 0; i < count; ++i, from += stride, to += width) {
    std::memcpy(to, from, static_cast<size_t>(width));
  }
}

}  // namespace

int64_t RowTable::StagedBytes(absl::Span<const BatchLeaf> leaves,
                              int64_t count) const {
  int64_t bytes = 0;
  for (const BatchLeaf& leaf : leaves) {
    if (!IsStaged(leaf)) continue;
    bytes += Aligned(layout_.fields()[leaf.leaf].width * count);
  }
  return bytes;
}

int64_t RowTable::PartRows(absl::Span<const BatchLeaf> leaves,
                           int64_t count) const {
  const int64_t bytes = StagedBytes(leaves, count);
  const int64_t part = std::clamp(bytes / 4, kMinPartBytes, kMaxPartBytes);
  const int64_t parts = (bytes + part - 1) / part;
  return parts <= 1 ? count : std::max<int64_t>(count / parts, 1);
}

absl::Status RowTable::PrepareWrite(int64_t count,
                                    absl::Span<const BatchLeaf> leaves) {
  {
    absl::MutexLock lock(&stream_mutex_);
    RILL_RETURN_IF_ERROR(order_->TakeFailure());
  }
  return staging_.Reserve(StagedBytes(leaves, PartRows(leaves, count)));
}

absl::Status RowTable::AwaitWrites() const {
  if (device().is_cpu()) return absl::OkStatus();
  absl::MutexLock lock(&stream_mutex_);
  order_->AwaitWrites();
  return order_->TakeFailure();
}

absl::Status RowTable::EnqueueWrite(absl::Span<const Slot> slots,
                                    absl::Span<const BatchLeaf> leaves,
                                    int batch_rank) {
  std::vector<Tensor> held;
  for (const BatchLeaf& leaf : leaves) {
    if (!IsStaged(leaf)) held.push_back(*leaf.ready);
  }
  RILL_ASSIGN_OR_RETURN(const Stream current, CurrentStream(device()));
  const Stream* stream = &current;
  if (held.empty()) {
    absl::MutexLock lock(&stream_mutex_);
    stream = &order_->stream();
  }
  const int64_t step = PartRows(leaves, static_cast<int64_t>(slots.size()));
  // One step of many lanes goes by lane, else rows go by step.
  const bool goes_by_lane = batch_rank == 2 && leaves[0].ready->shape()[1] == 1;
  const int row_dim = batch_rank == 2 && !goes_by_lane ? 1 : 0;
  absl::Status status;
  const int64_t count = std::ssize(slots);
  for (int64_t first = 0; status.ok() && first < count; first += step) {
    const bool is_last = first + step >= count;
    status =
        EnqueuePart(slots.subspan(first, step), leaves, row_dim, first, *stream,
                    is_last ? std::move(held) : std::vector<Tensor>());
  }
  // Parts that were enqueued still use the batch.
  if (!status.ok()) {
    stream->Synchronize().IgnoreError();
    staging_.Release(*stream).IgnoreError();
  }
  return status;
}

absl::Status RowTable::EnqueuePart(absl::Span<const Slot> slots,
                                   absl::Span<const BatchLeaf> leaves,
                                   int row_dim, int64_t first,
                                   const Stream& stream,
                                   std::vector<Tensor> held) {
  const auto count = static_cast<int64_t>(slots.size());
  const int64_t staged = StagedBytes(leaves, count);
  const bool is_direct = staged <= kMaxDirectBytes;
  StagingRing::Part part;
  if (staged > 0) {
    RILL_ASSIGN_OR_RETURN(part, staging_.Take(staged));
  }
  std::vector<LeafBatch>& places = ThreadScratch().places;
  places.clear();
  int64_t offset = 0;
  for (const BatchLeaf& leaf : leaves) {
    const int64_t width = layout_.fields()[leaf.leaf].width;
    if (width == 0) continue;
    if (!IsStaged(leaf)) {
      const int64_t stride = leaf.ready->strides_bytes()[row_dim];
      places.push_back(
          {leaf.leaf, leaf.ready->raw_data() + first * stride, stride});
      continue;
    }
    places.push_back(
        {leaf.leaf, (is_direct ? part.host : part.device) + offset, width});
    offset += Aligned(width * count);
  }
  const int64_t pieces =
      std::clamp<int64_t>(staged / kThreadBytes, 1, kMaxThreads);
  ParallelFor(pieces, PackThreads(), [&](int64_t i) {
    const int64_t begin = count * i / pieces;
    const int64_t end = count * (i + 1) / pieces;
    std::byte* to = part.host;
    for (const BatchLeaf& leaf : leaves) {
      const int64_t width = layout_.fields()[leaf.leaf].width;
      if (width == 0 || !IsStaged(leaf)) continue;
      const int64_t stride = leaf.ready->strides_bytes()[row_dim];
      PackRows(leaf.ready->raw_data() + (first + begin) * stride, stride, width,
               end - begin, to + begin * width);
      to += Aligned(width * count);
    }
  });
  const RowCopy copy = MakeCopy</*kIsWrite=*/true>(slots, places);
  absl::MutexLock lock(&stream_mutex_);
  RILL_RETURN_IF_ERROR(order_->BeginWrite(stream, copy.rows));
  if (staged > 0 && !is_direct) {
    RILL_RETURN_IF_ERROR(CopyAsync(part.device, part.host, staged, stream));
  }
  RILL_RETURN_IF_ERROR(Run</*kIsWrite=*/true>(copy, stream));
  RILL_RETURN_IF_ERROR(order_->EndWrite(stream, copy.rows, std::move(held)));
  return staging_.Release(stream);
}

absl::Status RowTable::Read(absl::Span<const Slot> slots,
                            absl::Span<const LeafBatch> leaves) const {
  // Without leaves it was asked whether the rows are there.
  if (slots.empty() || leaves.empty()) return absl::OkStatus();
  const RowCopy copy = MakeCopy</*kIsWrite=*/false>(slots, leaves);
  if (device().is_cpu()) {
    GatherRowsOnHost(copy.columns, copy.rows);
    if (next_ != nullptr) next_->Read(slots, leaves);
    return absl::OkStatus();
  }
  absl::ReleasableMutexLock lock(&stream_mutex_);
  RILL_RETURN_IF_ERROR(order_->CheckNotLost(copy.rows));
  RILL_RETURN_IF_ERROR(order_->BeginRead(order_->stream()));
  if (absl::Status status = Run</*kIsWrite=*/false>(copy, order_->stream());
      !status.ok()) {
    // Work that was enqueued still writes to the batch.
    order_->stream().Synchronize().IgnoreError();
    return status;
  }
  RILL_ASSIGN_OR_RETURN(Event end, order_->MarkRead());
  // Others go on meanwhile: writers above all.
  lock.Release();
  const absl::Status status = end.Synchronize();
  absl::MutexLock again(&stream_mutex_);
  order_->EndWaitedRead(std::move(end));
  // The writes before it have ended, and may be what has failed.
  absl::Status lost = order_->CheckNotLost(copy.rows);
  return lost.ok() ? status : lost;
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
  if (slots.empty()) return absl::OkStatus();
  // Rows whose next/K is about to be overwritten get a copy of their own first.
  // After the copy rows that are equal share again.
  if (next_ != nullptr) {
    RILL_RETURN_IF_ERROR(next_->BeforeWrite(slots, leaves));
  }
  const RowCopy copy = MakeCopy</*kIsWrite=*/true>(slots, leaves);
  ScatterRowsOnHost(copy.columns, copy.rows);
  return next_ == nullptr ? absl::OkStatus() : next_->AfterWrite(slots, leaves);
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

absl::StatusOr<Tensor> RowTable::ViewLeaf(size_t leaf, int64_t row,
                                          int64_t step, int64_t count) const {
  const LeafSpec& spec = layout_.spec().leaves()[leaf].spec;
  const RowField& field = layout_.fields()[leaf];
  const Shape shape = Shape({count}).Concat(spec.shape);
  std::array<int64_t, Shape::kMaxRank> strides;
  int64_t stride = DTypeSize(spec.dtype);
  for (int d = shape.rank() - 1; d > 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  strides[0] = field.stride * step;
  return Tensor::View(lent_, spec.dtype, shape,
                      field.offset + row * field.stride,
                      absl::MakeConstSpan(strides).first(shape.rank()));
}

absl::StatusOr<TensorDict> RowTable::View(SlotRange range) const {
  if (next_ != nullptr) {
    return FailedPrecondition(
        "Storage::Lease: leaf \"",
        spec().leaves()[layout_.next_pairs()[0].next].key,
        "\": got dedup_next, which keeps it in other rows, want all leaves in "
        "place; Read the rows, or create the storage without dedup_next");
  }
  const int64_t first = range.count == 0 ? 0 : layout_.RowOf(range.first);
  if (!device().is_cpu()) {
    absl::MutexLock lock(&stream_mutex_);
    order_->AwaitWrites();
    std::vector<int64_t> rows;
    if (order_->has_lost_rows()) {
      for (int64_t i = 0; i < range.count; ++i) {
        rows.push_back(first + i * layout_.row_step());
      }
    }
    RILL_RETURN_IF_ERROR(order_->CheckNotLost(rows));
  }
  TensorDict view({range.count});
  for (size_t i = 0; i < spec().leaves().size(); ++i) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor,
                          ViewLeaf(i, first, layout_.row_step(), range.count));
    RILL_RETURN_IF_ERROR(view.Set(spec().leaves()[i].key, std::move(tensor)));
  }
  return view;
}

}  // namespace rill::storage_internal
