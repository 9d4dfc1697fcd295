// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/row_pipeline.h"

#include <algorithm>
#include <utility>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

// Two blocks and what the maps hold fit a first cache of 32 KiB.
constexpr int64_t kBlockBytes = 12 << 10;

int64_t RowBytes(const LeafSpec& leaf) {
  return leaf.shape.num_elements() * DTypeSize(leaf.dtype);
}

}  // namespace

absl::StatusOr<RowPipeline> RowPipeline::Create(
    const LeafSpec& from, std::vector<std::shared_ptr<const RowMap>> maps) {
  RowPipeline pipeline;
  LeafSpec leaf = from;
  pipeline.from_bytes_ = RowBytes(leaf);
  int64_t widest = pipeline.from_bytes_;
  for (std::shared_ptr<const RowMap>& map : maps) {
    RILL_ASSIGN_OR_RETURN(LeafSpec after, map->MapSpec(leaf));
    pipeline.stages_.push_back({std::move(map), leaf.dtype, leaf.shape});
    leaf = std::move(after);
    widest = std::max(widest, RowBytes(leaf));
  }
  pipeline.to_bytes_ = RowBytes(leaf);
  pipeline.spec_ = std::move(leaf);
  pipeline.block_rows_ =
      std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, widest));
  for (Tensor& buffer : pipeline.buffers_) {
    RILL_ASSIGN_OR_RETURN(
        buffer, Tensor::Empty(DType::kUInt8, {pipeline.block_rows_ * widest}));
  }
  return pipeline;
}

absl::Status RowPipeline::Run(int64_t count, const std::byte* from,
                              std::byte* to) const {
  for (; count > 0; count -= block_rows_) {
    RILL_RETURN_IF_ERROR(RunBlock(std::min(count, block_rows_), from, to));
    from += block_rows_ * from_bytes_;
    to += block_rows_ * to_bytes_;
  }
  return absl::OkStatus();
}

absl::Status RowPipeline::RunBlock(int64_t count, const std::byte* from,
                                   std::byte* to) const {
  std::byte* const first = buffers_[0].raw_data();
  std::byte* const second = buffers_[1].raw_data();
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::byte* result = from == first ? second : first;
    if (stage.map->is_in_place() && from == second) result = second;
    if (stage.map->is_in_place() && from == first) result = first;
    if (i + 1 == stages_.size()) result = to;
    RILL_RETURN_IF_ERROR(
        stage.map->MapRows(stage.dtype, stage.shape, count, from, result));
    from = result;
  }
  return absl::OkStatus();
}

}  // namespace rill
