// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/list/list_rows.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {
namespace {

// Ragged leaves of a row begin at multiples of it: the widest element.
constexpr int64_t kAlignment = 16;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The row has bytes; nobody can write through the view.
absl::StatusOr<Tensor> ViewOf(const ListRowPtr& row, DType dtype,
                              const Shape& shape, int64_t offset) {
  return Tensor::View(
      Buffer::Wrap(row->bytes->data(), row->bytes->size_bytes(), Device::Cpu(),
                   MemoryKind::kPageable, row, /*is_writable=*/false),
      dtype, shape, offset);
}

}  // namespace

std::vector<Shape> NoRoom(absl::Span<const RaggedLeaf> leaves) {
  std::vector<Shape> shapes;
  for (const RaggedLeaf& leaf : leaves) {
    Shape none;
    for (int d = 0; d < leaf.rank; ++d) none = none.Concat({0});
    shapes.push_back(none);
  }
  return shapes;
}

void MakeRoom(absl::Span<const int64_t> sizes, Shape* largest) {
  for (int d = 0; d < largest->rank(); ++d) {
    *largest = largest->WithSize(d, std::max((*largest)[d], sizes[d]));
  }
}

absl::StatusOr<std::unique_ptr<ListRows>> ListRows::Create(
    const TensorDictSpec& even, EventLeaves events, const Lanes& lanes) {
  RILL_ASSIGN_OR_RETURN(
      RowLayout record,
      RowLayout::Create(even, {.count = 1, .capacity = 1}, StorageLayout::kRows,
                        StorageOrder::kLaneMajor));
  // All rows have to be countable.
  RILL_RETURN_IF_ERROR(RowLayout::Create(even, lanes, StorageLayout::kRows,
                                         StorageOrder::kLaneMajor)
                           .status());
  constexpr int64_t kMaxRows =
      INT64_MAX / static_cast<int64_t>(sizeof(ListRowPtr)) / 2;
  const int64_t slots = lanes.num_slots();
  std::unique_ptr<ListRowPtr[]> rows(
      slots > kMaxRows ? nullptr : new (std::nothrow) ListRowPtr[slots]);
  if (rows == nullptr) {
    return ResourceExhausted("ListStorage: memory: got none for a list of ",
                             slots, " rows");
  }
  return std::unique_ptr<ListRows>(new ListRows(
      std::move(record), std::move(events), lanes, std::move(rows)));
}

void ListRows::LearnRagged(std::vector<RaggedLeaf> leaves) {
  ragged_ = std::move(leaves);
  largest_ = NoRoom(ragged_);
}

// --- Writing -----------------------------------------------------------------

absl::StatusOr<ListRowPtr> ListRows::NewRow(const ListRow* old, int64_t number,
                                            absl::Span<const LeafBatch> places,
                                            int64_t place) const {
  // A row never changes, so a patch makes another from the old bytes and the
  // new ones. Readers that hold the old row need no lock.
  auto row = std::make_shared<ListRow>();
  // First the size of all: one allocation a row.
  int64_t size = Aligned(record_.size_bytes());
  const auto given = [&](size_t leaf) -> const Tensor* {
    const bool is_given =
        leaf < staged_ragged_.size() && !staged_ragged_[leaf].empty();
    return is_given ? &staged_ragged_[leaf][number] : nullptr;
  };
  for (size_t i = 0; i < ragged_.size(); ++i) {
    const Tensor* const tensor = given(i);
    row->shapes.push_back(tensor ? tensor->shape() : old->shapes[i]);
    row->offsets.push_back(size);
    // Both are there already, so their bytes can be counted; all of a row, too.
    size +=
        Aligned(row->shapes[i].num_elements() * DTypeSize(ragged_[i].dtype));
  }
  if (size == 0) return row;
  RILL_ASSIGN_OR_RETURN(row->bytes, Buffer::Allocate(size));
  std::byte* const bytes = row->bytes->data();
  if (old != nullptr && record_.size_bytes() > 0) {
    std::memcpy(bytes, old->bytes->data(), record_.size_bytes());
  }
  for (const LeafBatch& from : places) {
    const RowField& field = record_.fields()[from.leaf];
    if (field.width == 0) continue;
    std::memcpy(bytes + field.offset, from.data + place * from.stride,
                field.width);
  }
  for (size_t i = 0; i < ragged_.size(); ++i) {
    const Tensor* const tensor = given(i);
    const int64_t width =
        row->shapes[i].num_elements() * DTypeSize(ragged_[i].dtype);
    if (width == 0) continue;
    std::memcpy(
        bytes + row->offsets[i],
        tensor ? tensor->raw_data() : old->bytes->data() + old->offsets[i],
        width);
  }
  return row;
}

absl::Status ListRows::StageRun(const LaneRun& run,
                                absl::Span<const LeafBatch> places) {
  for (int64_t i = 0; i < run.steps; ++i) {
    RILL_ASSIGN_OR_RETURN(
        ListRowPtr row, NewRow(/*old=*/nullptr, run.first_row + i, places, i));
    staged_.push_back(
        {lanes_.SlotOf(run.lane, run.position + i), std::move(row)});
  }
  return absl::OkStatus();
}

absl::Status ListRows::StagePatch(absl::Span<const Slot> slots,
                                  absl::Span<const LeafBatch> places) {
  // Both rows are made of the stored one. They give the same leaves, so nothing
  // of the earlier one is missed.
  // Where a slot is named twice, the later row wins.
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    RILL_ASSIGN_OR_RETURN(ListRowPtr row,
                          NewRow(rows_[slots[i]].get(), place, places, place));
    staged_.push_back({slots[i], std::move(row)});
  }
  return absl::OkStatus();
}

void ListRows::Drop() {
  staged_ragged_.clear();
  staged_.clear();
}

int64_t ListRows::BytesOf(const ListRow& row) const {
  // With the counts that a shared_ptr keeps beside each.
  const auto fixed = static_cast<int64_t>(
      sizeof(ListRow) + sizeof(Buffer) + 4 * sizeof(void*) +
      row.shapes.size() * (sizeof(Shape) + sizeof(int64_t)));
  return fixed + (row.bytes == nullptr ? 0 : row.bytes->size_bytes());
}

void ListRows::Commit(const WritesInFlight::Write& /*write*/) {
  for (auto& [slot, row] : staged_) {
    const int64_t bytes = BytesOf(*row);
    rows_bytes_ += bytes;
    largest_row_bytes_ = std::max(largest_row_bytes_, bytes);
    if (rows_[slot] != nullptr) rows_bytes_ -= BytesOf(*rows_[slot]);
    for (size_t i = 0; i < ragged_.size(); ++i) {
      MakeRoom(row->shapes[i].sizes(), &largest_[i]);
    }
    rows_[slot] = std::move(row);
  }
  Drop();
}

void ListRows::Clear() {
  Drop();
  std::fill_n(rows_.get(), lanes_.num_slots(), nullptr);
  rows_bytes_ = 0;
}

RowStore::Usage ListRows::GetUsage() const {
  const int64_t list =
      lanes_.num_slots() * static_cast<int64_t>(sizeof(ListRowPtr));
  // The largest row so far, but at least one whose ragged leaves are empty.
  ListRow even;
  even.shapes.resize(ragged_.size());
  const int64_t row = std::max(largest_row_bytes_,
                               BytesOf(even) + Aligned(record_.size_bytes()));
  int64_t rows;
  if (__builtin_mul_overflow(lanes_.num_slots(), row, &rows) ||
      rows > INT64_MAX - list) {
    rows = INT64_MAX - list;
  }
  return {.memory = list + rows_bytes_, .full = list + rows};
}

// --- Reading -----------------------------------------------------------------

void ListRows::Pick(absl::Span<const Slot> slots,
                    std::vector<ListRowPtr>* rows) const {
  rows->clear();
  rows->reserve(slots.size());
  for (const Slot slot : slots) rows->push_back(rows_[slot]);
}

void ListRows::Copy(absl::Span<const ListRowPtr> rows,
                    absl::Span<const LeafBatch> places) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const LeafBatch& to : places) {
      const RowField& field = record_.fields()[to.leaf];
      if (field.width == 0) continue;
      std::memcpy(to.data + static_cast<int64_t>(i) * to.stride,
                  rows[i]->bytes->data() + field.offset, field.width);
    }
  }
}

absl::Status ListRows::Read(absl::Span<const Slot> slots,
                            absl::Span<const LeafBatch> places,
                            absl::FunctionRef<void()> release) const {
  thread_local std::vector<ListRowPtr> rows;
  Pick(slots, &rows);
  release();  // Rows do not change.
  Copy(rows, places);
  rows.clear();  // They may be the last to hold them.
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ListRows::EvenLeaf(const ListRowPtr& row,
                                          size_t leaf) const {
  const LeafSpec& even = spec.leaves()[leaf].spec;
  if (record_.fields()[leaf].width == 0) {
    return Tensor::Empty(even.dtype, even.shape);
  }
  return ViewOf(row, even.dtype, even.shape, record_.fields()[leaf].offset);
}

absl::StatusOr<Tensor> ListRows::RaggedLeafOf(const ListRowPtr& row,
                                              size_t leaf) const {
  const Shape& shape = row->shapes[leaf];
  if (shape.num_elements() == 0) {
    return Tensor::Empty(ragged_[leaf].dtype, shape);
  }
  return ViewOf(row, ragged_[leaf].dtype, shape, row->offsets[leaf]);
}

}  // namespace rill::storage_internal
