// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/compressed/compressed_rows.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {
namespace {

absl::string_view View(const std::byte* bytes, int64_t size) {
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)};
}

// `count` rows of `width` bytes, each `step` bytes from the one before.
void CopyRows(std::byte* to, int64_t to_step, const std::byte* from,
              int64_t from_step, int64_t width, int64_t count) {
  if (width == 0 || count == 0) return;
  if (to_step == width && from_step == width) {
    std::memcpy(to, from, count * width);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, width);
  }
}

// A row that is read from a sealed block.
struct Wanted {
  int64_t block = 0;
  int64_t offset = 0;
  int64_t place = 0;
  friend bool operator<(const Wanted& a, const Wanted& b) {
    return std::tie(a.block, a.place) < std::tie(b.block, b.place);
  }
};

// Kept so that a thread's reads stop allocating.
struct ReadScratch {
  std::vector<Wanted> wanted;
  std::vector<std::shared_ptr<const SealedBlock>> blocks;
  ScratchBytes column;
};

}  // namespace

CompressedRows::CompressedRows(RowLayout open_layout, EventLeaves events,
                               const Lanes& lanes, int64_t block_rows,
                               std::shared_ptr<Buffer> open,
                               std::unique_ptr<Sealed[]> blocks,
                               BlockSealer sealer)
    : RowStore(open_layout.spec(), std::move(events), lanes),
      open_layout_(std::move(open_layout)),
      block_rows_(block_rows),
      lane_blocks_((lanes.capacity - 1) / block_rows + 1),
      open_(std::move(open)),
      blocks_(std::move(blocks)),
      open_end_(lanes.count),
      sealer_(std::move(sealer)) {}

absl::StatusOr<std::unique_ptr<CompressedRows>> CompressedRows::Create(
    const TensorDictSpec& spec, EventLeaves events, const Lanes& lanes,
    int64_t block_rows, int level) {
  RILL_ASSIGN_OR_RETURN(
      RowLayout layout,
      RowLayout::Create(spec, {lanes.count, block_rows},
                        StorageLayout::kColumns, StorageOrder::kLaneMajor));
  // GetUsage multiplies them.
  // All rows have to be countable, plain ones too.
  RILL_RETURN_IF_ERROR(RowLayout::Create(spec, lanes, StorageLayout::kColumns,
                                         StorageOrder::kLaneMajor)
                           .status());
  RILL_ASSIGN_OR_RETURN(auto open, Buffer::Allocate(layout.size_bytes()));
  RILL_ASSIGN_OR_RETURN(BlockSealer sealer, BlockSealer::Create(level));
  const int64_t count = lanes.count * ((lanes.capacity - 1) / block_rows + 1);
  constexpr int64_t kMaxBlocks =
      INT64_MAX / static_cast<int64_t>(sizeof(Sealed)) / 2;
  std::unique_ptr<Sealed[]> blocks(
      count > kMaxBlocks ? nullptr : new (std::nothrow) Sealed[count]);
  if (blocks == nullptr) {
    return ResourceExhausted(
        "CompressedStorage: memory: got none for a table of ", count,
        " blocks");
  }
  return std::unique_ptr<CompressedRows>(new CompressedRows(
      std::move(layout), std::move(events), lanes, block_rows, std::move(open),
      std::move(blocks), std::move(sealer)));
}

bool CompressedRows::IsOpen(Slot slot) const {
  const int64_t end = open_end_[lanes_.LaneOf(slot)];
  const int64_t position = lanes_.PositionOf(slot);
  return position < end && position >= end - end % block_rows_;
}

std::byte* CompressedRows::OpenPlace(size_t leaf, int64_t row) const {
  const RowField& field = open_layout_.fields()[leaf];
  return open_->data() + field.offset + row * field.stride;
}

// --- Writing -----------------------------------------------------------------

absl::Status CompressedRows::StageRun(const LaneRun& run,
                                      absl::Span<const LeafBatch> places) {
  int64_t position = run.position;
  int64_t first = 0;  // Of the places.
  while (first < run.steps) {
    // A block that becomes full is sealed from the open rows and the batch,
    // without a pass through the open memory. Rows of a block that is not full
    // are copied there by Commit, as readers still see the old open rows.
    const int64_t block = position / block_rows_;
    const int64_t offset = position % block_rows_;
    const int64_t end = std::min((block + 1) * block_rows_, lanes_.capacity);
    const int64_t count = std::min(run.steps - first, end - position);
    if (position + count == end) {
      RILL_RETURN_IF_ERROR(StageSealed(
          run.lane, block, offset, count, places, first,
          /*is_open=*/open_end_[run.lane] == position && offset > 0));
    } else {
      if (offset > 0 && open_end_[run.lane] != position) {
        // Nobody's rows, of a lane that is loaded.
        for (size_t leaf = 0; leaf < open_layout_.fields().size(); ++leaf) {
          if (width(leaf) == 0) continue;
          std::memset(OpenPlace(leaf, run.lane * block_rows_), 0,
                      offset * width(leaf));
        }
      }
      const size_t begin = staged_places_.size();
      staged_places_.insert(staged_places_.end(), places.begin(), places.end());
      staged_copies_.push_back({run.lane * block_rows_ + offset, first, count,
                                begin, staged_places_.size()});
    }
    first += count;
    position += count;
  }
  // The end of the lane counts as its beginning: the next block is the first.
  staged_ends_.push_back({run.lane, position % lanes_.capacity});
  return absl::OkStatus();
}

absl::Status CompressedRows::StageSealed(int64_t lane, int64_t block,
                                         int64_t offset, int64_t count,
                                         absl::Span<const LeafBatch> places,
                                         int64_t first, bool is_open) {
  const int64_t rows = offset + count;
  const size_t leaves = open_layout_.fields().size();
  RILL_ASSIGN_OR_RETURN(std::byte * next,
                        columns_.Get(rows * open_layout_.row_bytes()));
  std::vector<absl::string_view> columns(leaves, View(next, 0));
  for (const LeafBatch& place : places) {
    const int64_t bytes = width(place.leaf);
    const std::byte* const from = place.data + first * place.stride;
    // The whole column lies in the batch without gaps and is compressed there.
    if (offset == 0 && place.stride == bytes) {
      columns[place.leaf] = View(from, rows * bytes);
      continue;
    }
    std::byte* const column = std::exchange(next, next + rows * bytes);
    if (is_open) {
      std::memcpy(column, OpenPlace(place.leaf, lane * block_rows_),
                  offset * bytes);
    } else {
      std::memset(column, 0, offset * bytes);  // Nobody's rows.
    }
    CopyRows(column + offset * bytes, bytes, from, place.stride, bytes, count);
    columns[place.leaf] = View(column, rows * bytes);
  }
  RILL_ASSIGN_OR_RETURN(Sealed sealed, sealer_.Seal(columns));
  staged_blocks_.push_back({lane * lane_blocks_ + block, std::move(sealed)});
  return absl::OkStatus();
}

absl::Status CompressedRows::StagePatch(absl::Span<const Slot> slots,
                                        absl::Span<const LeafBatch> places) {
  staged_places_.assign(places.begin(), places.end());
  std::vector<Wanted> sealed;
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (IsOpen(slots[i])) {
      staged_copies_.push_back(
          {OpenRow(slots[i]), place, 1, 0, staged_places_.size()});
    } else {
      sealed.push_back({BlockOf(slots[i]), OffsetOf(slots[i]), place});
    }
  }
  // Each block is opened and sealed once. Within it rows are in the order of
  // places, so the later of two for one slot wins.
  std::sort(sealed.begin(), sealed.end());
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (size_t i = 0; i < sealed.size(); ++i) {
    rows.push_back({sealed[i].offset, sealed[i].place});
    if (i + 1 < sealed.size() && sealed[i + 1].block == sealed[i].block) {
      continue;
    }
    RILL_RETURN_IF_ERROR(StagePatched(sealed[i].block, rows, places));
    rows.clear();
  }
  return absl::OkStatus();
}

absl::Status CompressedRows::StagePatched(
    int64_t block, absl::Span<const std::pair<int64_t, int64_t>> rows,
    absl::Span<const LeafBatch> places) {
  const SealedBlock& old = *blocks_[block];
  RILL_ASSIGN_OR_RETURN(std::byte * next, columns_.Get(old.open_bytes()));
  // Only the leaves that are named are decompressed.
  // Those without data stay as they are.
  std::vector<absl::string_view> columns(open_layout_.fields().size());
  ScratchBytes unpacked;
  for (const LeafBatch& place : places) {
    const int64_t bytes = width(place.leaf);
    const size_t size = old.column_bytes(place.leaf);
    if (size == 0) continue;
    RILL_ASSIGN_OR_RETURN(const std::byte* const before,
                          old.Open(place.leaf, &unpacked));
    std::byte* const column = std::exchange(next, next + size);
    std::memcpy(column, before, size);
    for (const auto& [offset, from] : rows) {
      std::memcpy(column + offset * bytes, place.data + from * place.stride,
                  bytes);
    }
    columns[place.leaf] = View(column, static_cast<int64_t>(size));
  }
  RILL_ASSIGN_OR_RETURN(Sealed sealed, sealer_.Seal(columns, &old));
  staged_blocks_.push_back({block, std::move(sealed)});
  return absl::OkStatus();
}

void CompressedRows::Drop() {
  staged_blocks_.clear();
  staged_copies_.clear();
  staged_places_.clear();
  staged_ends_.clear();
}

void CompressedRows::Commit(const WritesInFlight::Write& /*write*/) {
  for (auto& [block, sealed] : staged_blocks_) {
    Sealed& place = blocks_[block];
    if (place != nullptr) {
      sealed_bytes_ -= place->memory_bytes();
      unsealed_bytes_ -= place->open_bytes();
    }
    sealed_bytes_ += sealed->memory_bytes();
    unsealed_bytes_ += sealed->open_bytes();
    // A reader that has taken the old block holds it until it has copied.
    place = std::move(sealed);
  }
  for (const OpenCopy& copy : staged_copies_) {
    for (size_t i = copy.begin; i < copy.end; ++i) {
      const LeafBatch& place = staged_places_[i];
      const int64_t bytes = width(place.leaf);
      CopyRows(OpenPlace(place.leaf, copy.row), bytes,
               place.data + copy.first * place.stride, place.stride, bytes,
               copy.count);
    }
  }
  for (const auto& [lane, end] : staged_ends_) open_end_[lane] = end;
  Drop();
}

void CompressedRows::Clear() {
  Drop();
  std::fill_n(blocks_.get(), num_blocks(), nullptr);
  std::fill(open_end_.begin(), open_end_.end(), 0);
  sealed_bytes_ = 0;
  unsealed_bytes_ = 0;
}

// --- Reading -----------------------------------------------------------------

absl::Status CompressedRows::Read(absl::Span<const Slot> slots,
                                  absl::Span<const LeafBatch> places,
                                  absl::FunctionRef<void()> release) const {
  thread_local ReadScratch scratch;
  scratch.wanted.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (!IsOpen(slots[i])) {
      scratch.wanted.push_back({BlockOf(slots[i]), OffsetOf(slots[i]), place});
      continue;
    }
    const int64_t row = OpenRow(slots[i]);
    for (const LeafBatch& to : places) {
      if (width(to.leaf) == 0) continue;
      std::memcpy(to.data + place * to.stride, OpenPlace(to.leaf, row),
                  width(to.leaf));
    }
  }
  // Rows of one block together, so that each column is decompressed once.
  std::sort(scratch.wanted.begin(), scratch.wanted.end());
  scratch.blocks.clear();
  int64_t last = -1;
  for (const Wanted& row : scratch.wanted) {
    if (row.block == last) continue;
    last = row.block;
    scratch.blocks.push_back(blocks_[row.block]);
  }
  release();  // Sealed blocks do not change.

  absl::Span<const Wanted> wanted = scratch.wanted;
  absl::Status status;
  for (const Sealed& block : scratch.blocks) {
    size_t count = 1;
    while (count < wanted.size() && wanted[count].block == wanted[0].block) {
      ++count;
    }
    for (const LeafBatch& to : places) {
      const int64_t bytes = width(to.leaf);
      // After an error only the count of rows goes on: blocks must be let go
      // below.
      if (bytes == 0 || !status.ok()) continue;
      const auto column = block->Open(to.leaf, &scratch.column);
      status = column.status();
      if (!status.ok()) continue;
      for (const Wanted& row : wanted.first(count)) {
        std::memcpy(to.data + row.place * to.stride,
                    *column + row.offset * bytes, bytes);
      }
    }
    wanted.remove_prefix(count);
  }
  scratch.blocks.clear();  // They may be the last to hold them.
  return status;
}

RowStore::Usage CompressedRows::GetUsage() const {
  const int64_t fixed = open_layout_.size_bytes() +
                        num_blocks() * static_cast<int64_t>(sizeof(Sealed));
  const int64_t blocks_full =
      lanes_.num_slots() * open_layout_.row_bytes() +
      num_blocks() * SealedBlockOverhead(open_layout_.fields().size());
  return {.memory = fixed + sealed_bytes_,
          .full = fixed + blocks_full,
          .saved = unsealed_bytes_ - sealed_bytes_};
}

}  // namespace rill::storage_internal
