// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/row_moves.h"

#include <algorithm>

#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/row_column.h"
#include "rill/tensors/dtype.h"

// Backends gather rows of many tables in one call, and scatter the same way,
// but have no move between two tables. So rows go through `between`: two
// launches in all, where a copy for each leaf and row would be a launch each.

namespace rill::envs_internal {

absl::Status RowMoves::Bind(int64_t lanes, Device device) {
  lanes_ = lanes;
  for (Pair& pair : moved_) {
    RILL_ASSIGN_OR_RETURN(
        pair.between,
        Tensor::Empty(pair.to.dtype(), pair.to.shape(), {device}));
  }
  // One block of zeros serves every leaf: a narrower one reads its beginning,
  // with its own width as stride.
  int64_t widest = 0;
  for (const Tensor& leaf : cleared_) widest = std::max(widest, WidthOf(leaf));
  RILL_ASSIGN_OR_RETURN(const Tensor zeros,
                        Tensor::Zeros(DType::kUInt8, {lanes, widest}));
  RILL_ASSIGN_OR_RETURN(zeros_, zeros.To(device));
  return absl::OkStatus();
}

absl::Status RowMoves::Run(absl::Span<const int64_t> rows,
                           const Stream& stream) const {
  if (rows.empty()) return absl::OkStatus();
  std::vector<RowColumn> gathered;
  std::vector<RowColumn> scattered;
  const auto add = [this](const Tensor& table, const Tensor& batch,
                          std::vector<RowColumn>* columns) {
    const int64_t width = WidthOf(table);
    if (width == 0) return;
    columns->push_back({.table = table.raw_data(),
                        .table_stride = width,
                        .batch = batch.raw_data(),
                        .batch_stride = width,
                        .width = width});
  };
  for (const Pair& pair : moved_) {
    add(pair.from, pair.between, &gathered);
    add(pair.to, pair.between, &scattered);
  }
  for (const Tensor& leaf : cleared_) add(leaf, zeros_, &scattered);
  Backend& backend = *stream.backend();
  const int index = stream.device().index;
  RILL_RETURN_IF_ERROR(
      backend.GatherRows(index, gathered, rows, stream.handle()));
  return backend.ScatterRows(index, scattered, rows, stream.handle());
}

}  // namespace rill::envs_internal
