// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/serialized/row_store.h"

#include <algorithm>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::storage_internal {

absl::Status RowStore::StageAppend(const LaneSteps& /*append*/,
                                   const BatchRows& kept,
                                   WriteScratch* scratch) {
  std::vector<LeafBatch>& places = scratch->places;
  const int64_t dropped = scratch->plan.dropped;
  int64_t lane = 0;  // Of the batch; of its steps so many are staged.
  int64_t step = 0;
  // The plan has the ranges lane after lane, one or two each; `lane` and `step`
  // follow them through the batch.
  for (const SlotRange& range : scratch->plan.written) {
    places.clear();
    for (const BatchLeaf& leaf : scratch->leaves.leaves()) {
      if (leaf.ready->num_elements() == 0) continue;  // And no address.
      const auto strides = leaf.ready->strides_bytes();
      const int64_t step_stride = strides[kept.batch_rank - 1];
      const int64_t lane_stride = kept.batch_rank == 1 ? 0 : strides[0];
      places.push_back(
          {leaf.leaf,
           leaf.ready->raw_data() + lane * lane_stride + step * step_stride,
           step_stride});
    }
    RILL_RETURN_IF_ERROR(
        StageRun({.lane = lanes_.LaneOf(range.first),
                  .position = lanes_.PositionOf(range.first),
                  .steps = range.count,
                  .first_row = lane * (dropped + kept.steps) + dropped + step},
                 places));
    step += range.count;
    if (step < kept.steps) continue;
    step = 0;
    ++lane;
  }
  return absl::OkStatus();
}

absl::Status RowStore::StageOverwrite(absl::Span<const Slot> slots,
                                      WriteScratch* scratch) {
  scratch->leaves.PlaceRows(/*first=*/0, /*past_caches=*/false,
                            &scratch->places);
  return StagePatch(slots, scratch->places);
}

absl::StatusOr<Tensor> RowStore::ReadToHost(absl::Span<const Slot> slots,
                                            size_t leaf) const {
  const LeafSpec& wanted = spec.leaves()[leaf].spec;
  const Shape shape = {static_cast<int64_t>(slots.size())};
  RILL_ASSIGN_OR_RETURN(
      Tensor values, Tensor::Empty(wanted.dtype, shape.Concat(wanted.shape)));
  const LeafBatch place = {
      leaf, values.raw_data(),
      wanted.shape.num_elements() * DTypeSize(wanted.dtype)};
  RILL_RETURN_IF_ERROR(Read(slots, {place}, [] {}));
  return values;
}

absl::StatusOr<TensorDict> RowStore::ReadToHost(
    absl::Span<const Slot> slots) const {
  std::vector<LeafBatch> places;
  RILL_ASSIGN_OR_RETURN(
      TensorDict rows,
      MakeHostRows(spec, static_cast<int64_t>(slots.size()), &places));
  RILL_RETURN_IF_ERROR(Read(slots, places, [] {}));
  return rows;
}

absl::Status RowStore::StageStored(const StoredRun& run,
                                   const BatchLeaves& rows) {
  std::vector<LeafBatch> places;
  int64_t next = 0;
  for (int64_t step = run.first_step; step < run.end_step; step += next) {
    const int64_t first = step - run.first_step;
    rows.PlaceRows(run.row + first, /*past_caches=*/false, &places);
    const int64_t position = step % lanes_.capacity;
    // A run of a save may go around the end of the ring; a LaneRun does not.
    next = std::min(run.end_step - step, lanes_.capacity - position);
    RILL_RETURN_IF_ERROR(StageRun({.lane = run.lane,
                                   .position = position,
                                   .steps = next,
                                   .first_row = first},
                                  places));
  }
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
