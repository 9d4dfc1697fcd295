// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/row_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/rows/row_kernels.h"

// Rows go through all maps in pieces. A piece is read from the caller's memory
// by the first map, alternates between two buffers, and is written to its place
// by the last one. So each byte of the batch is read once and written once,
// however many maps there are.
namespace rill {
namespace {

// Sizes of the two levels. A piece and its result, at most 12 KiB each unless
// one row is wider, stay in a first cache of 32 KiB. A block of gathered rows
// stays in the second one, and is large enough for the gather to read ahead.
constexpr int64_t kPieceBytes = 12 << 10;
constexpr int64_t kBlockBytes = 64 << 10;

// Bytes of a piece: of an element where all maps are flat, else of a row.
int64_t PieceBytes(const LeafSpec& leaf, bool is_element) {
  return DTypeSize(leaf.dtype) * (is_element ? 1 : leaf.shape.num_elements());
}

// How many of `each` bytes are in `bytes`, at least one.
int64_t NumIn(int64_t bytes, int64_t each) {
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, each));
}

}  // namespace

absl::StatusOr<RowPipeline> RowPipeline::Create(
    const LeafSpec& from, std::vector<std::shared_ptr<const RowMap>> maps,
    std::vector<std::string> places) {
  places.resize(maps.size());
  RowPipeline pipeline;
  const bool is_flat =
      absl::c_all_of(maps, [](const auto& map) { return map->is_flat(); });
  // Flat maps may be cut anywhere, so that a row of any width makes full
  // pieces. A single other map needs whole rows.
  if (is_flat) pipeline.pieces_ = from.shape.num_elements();
  LeafSpec leaf = from;
  // The widest piece of all stages sizes the buffers: a cast may make elements
  // wider on the way.
  int64_t widest = PieceBytes(leaf, is_flat);
  pipeline.from_bytes_ = widest;
  for (size_t i = 0; i < maps.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(LeafSpec after, maps[i]->MapSpec(leaf));
    // A flat map is handed elements: their shape is [].
    pipeline.stages_.push_back({std::move(maps[i]), leaf.dtype,
                                is_flat ? Shape() : leaf.shape,
                                std::move(places[i])});
    leaf = std::move(after);
    widest = std::max(widest, PieceBytes(leaf, is_flat));
  }
  pipeline.to_bytes_ = PieceBytes(leaf, is_flat);
  pipeline.spec_ = std::move(leaf);
  // A row without elements has pieces of 0 bytes; NumIn then divides by 1.
  const int64_t row_bytes = PieceBytes(from, false);
  pipeline.step_ = NumIn(kPieceBytes, widest);
  pipeline.block_rows_ = NumIn(kBlockBytes, row_bytes);
  RILL_ASSIGN_OR_RETURN(
      pipeline.block_,
      Tensor::Empty(DType::kUInt8, {pipeline.block_rows_ * row_bytes}));
  for (Tensor& buffer : pipeline.buffers_) {
    RILL_ASSIGN_OR_RETURN(
        buffer, Tensor::Empty(DType::kUInt8, {pipeline.step_ * widest}));
  }
  return pipeline;
}

absl::Status RowPipeline::Run(int64_t count, const std::byte* from,
                              std::byte* to, bool is_streamed) const {
  return RunPieces(count * pieces_, from, to, is_streamed);
}

absl::Status RowPipeline::RunPieces(int64_t count, const std::byte* from,
                                    std::byte* to, bool is_streamed) const {
  for (int64_t left = count; left > 0; left -= step_) {
    RILL_RETURN_IF_ERROR(
        RunPiece(std::min(left, step_), from, to, is_streamed));
    // Past the end after the last piece, but not used then.
    from += step_ * from_bytes_;
    to += step_ * to_bytes_;
  }
  return absl::OkStatus();
}

void RowPipeline::EndStreams() { transforms_internal::EndStreams(); }

absl::Status RowPipeline::RunPiece(int64_t count, const std::byte* from,
                                   std::byte* to, bool is_streamed) const {
  std::byte* const first = buffers_[0].raw_data();
  std::byte* const second = buffers_[1].raw_data();
  // The two buffers alternate, as most maps may not write where they read. An
  // in-place map stays in its buffer and saves touching the other one.
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::byte* result = from == first ? second : first;
    if (from == first && stage.map->is_in_place()) result = first;
    if (i + 1 == stages_.size()) {
      // The last map writes to the caller's memory; past the caches only if it
      // has such a kernel.
      if (!is_streamed) {
        result = to;
      } else if (stage.map->StreamRows(stage.dtype, stage.shape, count, from,
                                       to)) {
        return absl::OkStatus();
      }
    }
    absl::Status status =
        stage.map->MapRows(stage.dtype, stage.shape, count, from, result);
    if (!status.ok()) {
      if (stage.place.empty()) return status;
      RILL_RETURN_IF_ERROR(std::move(status)) << "in " << stage.place;
    }
    from = result;
  }
  // It has none: the result lies in a buffer and is copied past the caches.
  if (is_streamed) {
    transforms_internal::StreamCopy(from, count * to_bytes_, to);
  }
  return absl::OkStatus();
}

}  // namespace rill
