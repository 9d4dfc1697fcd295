// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DEDUP_CELL_POOL_H_
#define RILL_STORAGE_DEDUP_CELL_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/buffer.h"

namespace rill::storage_internal {

// Cells of one width in host memory that are taken and given back. Memory comes
// in chunks of about a MiB, which never move and stay until the pool goes.
//
// Thread-safety: thread-compatible, except bytes() and At of a cell that is
//   taken. At may run beside anything, in a thread that got the cell from the
//   one that took it.
// Cost: O(1), and an allocation where no cell of a chunk is left.
class CellPool {
 public:
  // `width` > 0; at most `max_cells` >= 1 are taken at a time.
  CellPool(int64_t width, int64_t max_cells);

  // Afterwards `count` cells, or as many as max_cells allows, can be taken
  // without an allocation. RESOURCE_EXHAUSTED names asked and free bytes; no
  // cell is lost.
  absl::Status Reserve(int64_t count);
  // A cell with any bytes. RESOURCE_EXHAUSTED as Reserve.
  absl::StatusOr<int32_t> Take();
  void GiveBack(int32_t cell) { free_.push_back(cell); }
  // All that are taken.
  void GiveBackAll();

  std::byte* At(int32_t cell) const {
    return chunks_[static_cast<size_t>(cell) >> shift_] +
           (cell & ((1 << shift_) - 1)) * width_;
  }
  // Memory taken, for cells in use or not.
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  absl::Status Grow();
  int64_t num_cells() const {
    return static_cast<int64_t>(buffers_.size()) << shift_;
  }

  const int64_t width_;
  const int64_t max_cells_;
  int shift_ = 0;                   // A chunk has 1 << shift_ cells.
  std::vector<std::byte*> chunks_;  // Of its final size from the beginning.
  std::vector<std::shared_ptr<Buffer>> buffers_;  // As many as there are.
  std::vector<int32_t> free_;  // Has room for all cells that there are.
  std::atomic<int64_t> bytes_{0};
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DEDUP_CELL_POOL_H_
