// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ROW_PIPELINE_H_
#define RILL_TRANSFORMS_ROWS_ROW_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/row_map.h"

namespace rill {

// Maps one after another over blocks of rows that fit the processor's first
// cache: no batch is made between them. The results are those of one map after
// the other over the whole batch, bit for bit.
//
// Shapes: rows as the maps say, one after another in host memory.
// Thread-safety: thread-compatible.
// Cost: that of the maps; allocates nothing after Create.
class RowPipeline {
 public:
  // Rows of `from` through at least one map. INVALID_ARGUMENT names what the
  // first map that cannot take them wants. Errors of a map end with its place,
  // where there is one for each.
  static absl::StatusOr<RowPipeline> Create(
      const LeafSpec& from, std::vector<std::shared_ptr<const RowMap>> maps,
      std::vector<std::string> places = {});

  // For the rows that come out.
  const LeafSpec& spec() const { return spec_; }

  // Memory for as many rows of `from`, at least one, that are in the cache when
  // Run reads them.
  int64_t block_rows() const { return block_rows_; }
  std::byte* block() const { return block_.raw_data(); }

  // `count` rows at `from`, which may be block(), to as many at `to`.
  // `is_streamed`: past the caches, as more comes than they hold; before others
  // read that, EndStreams is to be called.
  absl::Status Run(int64_t count, const std::byte* from, std::byte* to,
                   bool is_streamed) const;
  static void EndStreams();

  // One of `parts` parts of a row that have the same number of elements.
  // `parts` is 1 unless all maps are flat (RowMap::is_flat).
  absl::Status RunPart(int64_t parts, const std::byte* from, std::byte* to,
                       bool is_streamed) const {
    return RunPieces(pieces_ / parts, from, to, is_streamed);
  }

 private:
  struct Stage {
    std::shared_ptr<const RowMap> map;
    DType dtype;  // Before it.
    Shape shape;
    std::string place;
  };

  RowPipeline() = default;

  absl::Status RunPieces(int64_t count, const std::byte* from, std::byte* to,
                         bool is_streamed) const;
  absl::Status RunPiece(int64_t count, const std::byte* from, std::byte* to,
                        bool is_streamed) const;

  std::vector<Stage> stages_;
  LeafSpec spec_;
  int64_t block_rows_ = 1;
  // Rows are mapped in pieces: of an element each, where all maps are flat.
  int64_t pieces_ = 1;      // Of a row.
  int64_t step_ = 1;        // Pieces that are mapped at once.
  int64_t from_bytes_ = 0;  // Of a piece that goes in.
  int64_t to_bytes_ = 0;    // Of one that comes out.
  Tensor block_;
  Tensor buffers_[2];  // Between the maps; for `step_` pieces.
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_ROW_PIPELINE_H_
