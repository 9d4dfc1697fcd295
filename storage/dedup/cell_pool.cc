// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dedup/cell_pool.h"

#include <algorithm>
#include <utility>

#include "rill/base/status_macros.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
// Cells are counted in int32.
constexpr int64_t kMostCells = int64_t{1} << 30;

}  // namespace

CellPool::CellPool(int64_t width, int64_t max_cells)
    : width_(width), max_cells_(max_cells) {
  // Chunks have a power of two of cells, so that At takes a shift and a mask.
  const int64_t most = std::min(max_cells, kMostCells);
  while ((int64_t{2} << shift_) * width_ <= kChunkBytes &&
         (int64_t{1} << shift_) < most) {
    ++shift_;
  }
  // In full at once: readers index it while a chunk is added.
  chunks_.resize(static_cast<size_t>(((most - 1) >> shift_) + 1));
}

absl::Status CellPool::Grow() {
  if (buffers_.size() == chunks_.size()) {
    return ResourceExhausted(
        "CellPool::Reserve: cells: got ", num_cells(),
        " that are taken, want one more; lower the capacity");
  }
  const int64_t cells = int64_t{1} << shift_;
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                        Buffer::Allocate(cells * width_));
  const size_t chunk = buffers_.size();
  chunks_[chunk] = buffer->data();
  buffers_.push_back(std::move(buffer));
  bytes_.fetch_add(cells * width_, std::memory_order_relaxed);
  // GiveBack must not allocate, as it runs where nothing may fail.
  if (free_.capacity() < static_cast<size_t>(num_cells())) {
    free_.reserve(2 * static_cast<size_t>(num_cells()));
  }
  const int64_t first = static_cast<int64_t>(chunk) << shift_;
  // The lowest cell is taken first, so that memory is touched in order.
  for (int64_t i = cells - 1; i >= 0; --i) {
    free_.push_back(static_cast<int32_t>(first + i));
  }
  return absl::OkStatus();
}

absl::Status CellPool::Reserve(int64_t count) {
  while (static_cast<int64_t>(free_.size()) < count &&
         num_cells() < max_cells_) {
    RILL_RETURN_IF_ERROR(Grow());
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> CellPool::Take() {
  if (free_.empty()) {
    RILL_RETURN_IF_ERROR(Grow());
  }
  const int32_t cell = free_.back();
  free_.pop_back();
  return cell;
}

void CellPool::GiveBackAll() {
  free_.clear();
  for (int64_t i = num_cells() - 1; i >= 0; --i) {
    free_.push_back(static_cast<int32_t>(i));
  }
}

}  // namespace rill::storage_internal
