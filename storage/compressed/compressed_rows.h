// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_COMPRESSED_COMPRESSED_ROWS_H_
#define RILL_STORAGE_COMPRESSED_COMPRESSED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/storage/compressed/sealed_block.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/serialized/row_store.h"
#include "rill/storage/sharing/writes_in_flight.h"

namespace rill::storage_internal {

// Rows in blocks: positions [b x B, (b + 1) x B) of a lane, the last block to
// the lane's end. Rows of the block that a lane's next step goes to, up to that
// step, lie open; all others are in sealed blocks. So the block of an older
// round stays until the one that takes its place is full.
//
// Thread-safety: RowStore's.
class CompressedRows final : public RowStore {
 public:
  // RESOURCE_EXHAUSTED where there is no memory for the open blocks.
  static absl::StatusOr<std::unique_ptr<CompressedRows>> Create(
      const TensorDictSpec& spec, EventLeaves events, const Lanes& lanes,
      int64_t block_rows, int level);

  void Drop() override;
  void Commit(const WritesInFlight::Write& write) override;
  void Clear() override;
  absl::Status Read(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> places,
                    absl::FunctionRef<void()> release) const override;
  Usage GetUsage() const override;

 private:
  using Sealed = std::shared_ptr<const SealedBlock>;
  // Places [first, first + count) of places [begin, end) of staged_places_ go
  // to the open rows from `row` on.
  struct OpenCopy {
    int64_t row = 0;
    int64_t first = 0;
    int64_t count = 0;
    size_t begin = 0;
    size_t end = 0;
  };

  CompressedRows(RowLayout open_layout, EventLeaves events, const Lanes& lanes,
                 int64_t block_rows, std::shared_ptr<Buffer> open,
                 std::unique_ptr<Sealed[]> blocks, BlockSealer sealer);

  absl::Status StageRun(const LaneRun& run,
                        absl::Span<const LeafBatch> places) override;
  absl::Status StagePatch(absl::Span<const Slot> slots,
                          absl::Span<const LeafBatch> places) override;
  int64_t num_blocks() const { return lanes_.count * lane_blocks_; }
  int64_t BlockOf(Slot slot) const {
    return lanes_.LaneOf(slot) * lane_blocks_ +
           lanes_.PositionOf(slot) / block_rows_;
  }
  int64_t OffsetOf(Slot slot) const {
    return lanes_.PositionOf(slot) % block_rows_;
  }
  bool IsOpen(Slot slot) const;
  int64_t OpenRow(Slot slot) const {
    return lanes_.LaneOf(slot) * block_rows_ + OffsetOf(slot);
  }
  std::byte* OpenPlace(size_t leaf, int64_t row) const;
  int64_t width(size_t leaf) const { return open_layout_.leaf_bytes(leaf); }

  // Seals rows [0, offset) as they lie open (zeros where they do not) and
  // `count` that are `places` from `first` on.
  absl::Status StageSealed(int64_t lane, int64_t block, int64_t offset,
                           int64_t count, absl::Span<const LeafBatch> places,
                           int64_t first, bool is_open);
  // Patches rows of one sealed block: (offset, place) of each.
  absl::Status StagePatched(int64_t block,
                            absl::Span<const std::pair<int64_t, int64_t>> rows,
                            absl::Span<const LeafBatch> places);

  const RowLayout open_layout_;  // block_rows_ of each lane, in columns.
  const int64_t block_rows_;
  const int64_t lane_blocks_;
  const std::shared_ptr<Buffer> open_;
  const std::unique_ptr<Sealed[]> blocks_;  // Null: never full.
  std::vector<int64_t> open_end_;  // By lane: where the next step goes.
  int64_t sealed_bytes_ = 0;
  int64_t unsealed_bytes_ = 0;  // Of the rows in sealed blocks.

  BlockSealer sealer_;
  std::vector<std::pair<int64_t, Sealed>> staged_blocks_;
  std::vector<OpenCopy> staged_copies_;
  std::vector<LeafBatch> staged_places_;
  std::vector<std::pair<int64_t, int64_t>> staged_ends_;  // Lane, position.
  ScratchBytes columns_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_COMPRESSED_COMPRESSED_ROWS_H_
