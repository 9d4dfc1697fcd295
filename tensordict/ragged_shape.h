// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_RAGGED_SHAPE_H_
#define RILL_TENSORDICT_RAGGED_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensors/per_dim.h"
#include "rill/tensors/shape.h"

namespace rill {

// A shape of which some dimensions have no single size: the batch shape of a
// LazyStack whose members differ there. Written with -1 in these dimensions, as
// TorchRL's batch_size: episodes of 3, 1 and 4 steps are "[3, -1]". A Shape
// never holds -1, so such a dimension cannot be taken for a size.
//
// A plain value without allocation. Thread-safety: thread-compatible.
class RaggedShape {
 public:
  static constexpr int64_t kRagged = -1;

  RaggedShape() = default;
  RaggedShape(const Shape& shape);  // NOLINT: every shape is one, not ragged.

  int rank() const { return rank_; }
  // The size, or kRagged; `dim` in [0, rank()).
  int64_t operator[](int dim) const { return sizes_[dim]; }
  absl::Span<const int64_t> sizes() const {
    return absl::MakeConstSpan(sizes_.data(), static_cast<size_t>(rank_));
  }
  // True if any dimension is.
  bool is_ragged() const;
  // INVALID_ARGUMENT names the shape where is_ragged().
  absl::StatusOr<Shape> ToShape() const;

  // With kRagged where the sizes of `other`, of the same rank, differ.
  RaggedShape MergedWith(const Shape& other) const;
  // With a new dimension in front of `dim`, in [0, rank()]; rank() is below
  // Shape::kMaxRank.
  RaggedShape WithDim(int dim, int64_t size) const;

  // True if the first dimensions are just `prefix` / `shape`'s are just these.
  // A ragged dimension equals no size.
  bool StartsWith(const Shape& prefix) const;
  bool IsPrefixOf(const Shape& shape) const;

  std::string ToString() const;  // "[3, -1]"
  friend std::ostream& operator<<(std::ostream& os, const RaggedShape& shape);
  // The same sizes, and ragged in the same dimensions.
  friend bool operator==(const RaggedShape& a, const RaggedShape& b) {
    return a.sizes() == b.sizes();
  }

 private:
  tensor_internal::PerDim sizes_;
  int rank_ = 0;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_RAGGED_SHAPE_H_
