// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_LIST_LIST_ROWS_H_
#define RILL_STORAGE_LIST_LIST_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/serialized/row_store.h"
#include "rill/storage/sharing/writes_in_flight.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// A batch of padded rows has a dimension more.
inline constexpr int kMaxRaggedRank = Shape::kMaxRank - 1;

// A leaf whose shape is each row's own.
struct RaggedLeaf {
  std::string key;
  DType dtype = DType::kFloat32;
  int rank = 0;  // Of a row.
  friend bool operator==(const RaggedLeaf&, const RaggedLeaf&) = default;
};

// For each leaf the shape of its rank that has room for nothing.
std::vector<Shape> NoRoom(absl::Span<const RaggedLeaf> leaves);
// Makes room in `largest` for a row of these sizes.
void MakeRoom(absl::Span<const int64_t> sizes, Shape* largest);

// One row: its even leaves as a record, then its ragged ones. Never changes.
struct ListRow {
  std::shared_ptr<Buffer> bytes;  // Null: none.
  // One a ragged leaf.
  std::vector<Shape> shapes;
  std::vector<int64_t> offsets;
};
using ListRowPtr = std::shared_ptr<const ListRow>;

// Values of ragged leaves, one list a leaf with a tensor a row: contiguous, in
// host memory. An empty list: not that leaf.
using RaggedRows = std::vector<std::vector<Tensor>>;

// Rows as a list of what each holds. A write makes new rows; a holder of an old
// one keeps its content.
//
// Thread-safety: RowStore's; Pick and largest() run beside Stage* and Drop.
class ListRows final : public RowStore {
 public:
  // RESOURCE_EXHAUSTED where there is no memory for the list.
  static absl::StatusOr<std::unique_ptr<ListRows>> Create(
      const TensorDictSpec& even, EventLeaves events, const Lanes& lanes);

  // Once, before the first row.
  void LearnRagged(std::vector<RaggedLeaf> leaves);
  // Empty: not known yet, or there are none.
  const std::vector<RaggedLeaf>& ragged() const { return ragged_; }
  // A shape for each ragged leaf that holds every row since this was made.
  const std::vector<Shape>& largest() const { return largest_; }

  // Ragged leaves of the rows to be staged next, of the ranks and dtypes of
  // ragged().
  void SetRagged(RaggedRows rows) { staged_ragged_ = std::move(rows); }

  void Commit(const WritesInFlight::Write& write) override;
  void Drop() override;
  void Clear() override;
  absl::Status Read(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> places,
                    absl::FunctionRef<void()> release) const override;
  Usage GetUsage() const override;

  void Pick(absl::Span<const Slot> slots, std::vector<ListRowPtr>* rows) const;
  // Row i -> place i. Needs no lock.
  void Copy(absl::Span<const ListRowPtr> rows,
            absl::Span<const LeafBatch> places) const;
  // Views of a row that nobody can write through. Need no lock.
  absl::StatusOr<Tensor> EvenLeaf(const ListRowPtr& row, size_t leaf) const;
  absl::StatusOr<Tensor> RaggedLeafOf(const ListRowPtr& row, size_t leaf) const;

 private:
  ListRows(RowLayout record, EventLeaves events, const Lanes& lanes,
           std::unique_ptr<ListRowPtr[]> rows)
      : RowStore(record.spec(), std::move(events), lanes),
        record_(std::move(record)),
        rows_(std::move(rows)) {}

  absl::Status StageRun(const LaneRun& run,
                        absl::Span<const LeafBatch> places) override;
  absl::Status StagePatch(absl::Span<const Slot> slots,
                          absl::Span<const LeafBatch> places) override;

  // The row `old` (or none) with ragged leaves from row `number` of
  // staged_ragged_, and even ones from place `place`.
  absl::StatusOr<ListRowPtr> NewRow(const ListRow* old, int64_t number,
                                    absl::Span<const LeafBatch> places,
                                    int64_t place) const;
  int64_t BytesOf(const ListRow& row) const;

  const RowLayout record_;                    // Of one row's even leaves.
  const std::unique_ptr<ListRowPtr[]> rows_;  // Null: never written.
  std::vector<RaggedLeaf> ragged_;
  std::vector<Shape> largest_;
  int64_t rows_bytes_ = 0;
  int64_t largest_row_bytes_ = 0;

  RaggedRows staged_ragged_;
  std::vector<std::pair<Slot, ListRowPtr>> staged_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_LIST_LIST_ROWS_H_
