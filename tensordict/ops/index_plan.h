// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_INDEX_PLAN_H_
#define RILL_TENSORDICT_OPS_INDEX_PLAN_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/ops/index.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

// The meaning of an index expression for a batch shape, for the .cc files of
// this package.
namespace rill::ops_internal {

// Elements of a tensor in three nested loops: `outer` dimensions, a list of
// byte offsets, `inner` dimensions.
struct Pieces {
  Shape outer = {};
  std::vector<int64_t> outer_strides = {};
  absl::Span<const int64_t> offsets;
  Shape inner = {};
  std::vector<int64_t> inner_strides = {};
};
enum class Direction { kGather, kScatter };
// Copies them from `first` on into `packed`, one behind the other, or back.
void CopyPieces(Direction direction, const Pieces& pieces, int64_t item_bytes,
                std::byte* first, std::byte* packed);

class IndexPlan {
 public:
  static absl::StatusOr<IndexPlan> Create(
      absl::string_view caller, const Shape& batch_shape,
      absl::Span<const ops::DimIndex> index);

  // The result made of SelectDim, Slice and Unsqueeze, which know all kinds of
  // entries, if that is possible.
  absl::StatusOr<std::optional<TensorDict>> InSteps(
      const TensorDict& dict) const;

  // The batch shape of the result.
  const Shape& shape() const { return shape_; }
  // The result is a copy: there are masks or index tensors.
  bool copies() const { return copies_; }
  // Set if this is a choice of rows of dimension 0 and nothing else.
  const std::vector<int64_t>* rows() const;

  absl::StatusOr<Shape> ResultShape(const Tensor& leaf) const;
  // The result of a leaf, if not copies().
  absl::StatusOr<Tensor> View(const Tensor& leaf) const;
  // Copies between the elements of a leaf and `packed`, which is contiguous and
  // of ResultShape, if copies().
  void Copy(Direction direction, const Tensor& leaf,
            const Tensor& packed) const;

 private:
  // A dimension of the view that is taken before any copy.
  struct Dim {
    int source;  // -1 for a new one.
    int64_t begin = 0;
    int64_t step = 1;
    int64_t size = 1;
    // The choice of a mask or an index tensor here, and its shape; the shapes
    // are broadcast in the end.
    std::optional<std::vector<int64_t>> chosen = {};
    Shape chosen_shape = {};
  };

  IndexPlan() = default;
  absl::Status Add(absl::string_view caller, const ops::DimIndex& element,
                   int* source);
  absl::Status AddIndex(absl::string_view caller, int64_t index, int source);
  absl::Status AddRange(absl::string_view caller, const ops::Range& range,
                        int source);
  absl::Status AddMask(absl::string_view caller, const Tensor& mask,
                       int source);
  absl::Status AddIndices(absl::string_view caller, const Tensor& indices,
                          int source);
  void AddWhole(int source);
  absl::Status Broadcast(absl::string_view caller);
  absl::Status Finish(absl::string_view caller);

  Shape batch_shape_;
  Shape shape_;
  std::vector<Dim> dims_;
  // Dimensions that are dropped, and the index taken of each.
  std::vector<std::pair<int, int64_t>> taken_;
  bool copies_ = false;
  int block_at_ = 0;  // Where the chosen dimensions begin in the result.
  int64_t num_chosen_ = 0;
};

// `indices` (int64, host) as a list, counted from the front.
absl::StatusOr<std::vector<int64_t>> WrapIndices(absl::string_view caller,
                                                 const Tensor& indices,
                                                 const Shape& shape, int dim);

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_INDEX_PLAN_H_
