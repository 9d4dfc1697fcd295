// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_SHAPE_H_
#define RILL_TENSORS_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensors/per_dim.h"

namespace rill {

// The sizes of a tensor's dimensions, outermost first. A plain value without
// allocation.
//
// Thread-safety: thread-compatible.
// Limits: rank at most 8; sizes >= 0; their product fits in int64.
class Shape {
 public:
  static constexpr int kMaxRank = tensor_internal::PerDim::kSize;

  Shape() = default;
  // For literals in code: at most kMaxRank sizes, the rest is dropped, and
  // negative ones become 0. Sizes from outside go through Create.
  Shape(std::initializer_list<int64_t> sizes)  // NOLINT: reads as a literal
      : Shape(absl::Span<const int64_t>(sizes.begin(), sizes.size())) {}

  // INVALID_ARGUMENT names the shape and the limit that it breaks.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> sizes);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return sizes_[dim]; }
  absl::Span<const int64_t> sizes() const {
    return absl::MakeConstSpan(sizes_.data(), rank_);
  }
  // Product of the sizes; 1 for rank 0.
  int64_t num_elements() const {
    int64_t product = 1;
    bool overflow = false;
    for (int d = 0; d < rank_; ++d) {
      if (sizes_[d] == 0) return 0;
      overflow |= __builtin_mul_overflow(product, sizes_[d], &product);
    }
    // Only a literal can get here: too large to be allocated, whatever it is.
    return overflow ? std::numeric_limits<int64_t>::max() : product;
  }

  // The first / last dimensions, and both joined. `count` in [0, rank()]; a
  // join past kMaxRank is cut (Create checks where it matters).
  Shape Prefix(int count) const {
    return Shape(sizes().subspan(0, std::clamp(count, 0, rank_)));
  }
  Shape Suffix(int from) const {
    return Shape(sizes().subspan(std::clamp(from, 0, rank_)));
  }
  Shape Concat(const Shape& tail) const {
    Shape joined = *this;
    for (int d = 0; d < tail.rank_ && joined.rank_ < kMaxRank; ++d) {
      joined.sizes_[joined.rank_++] = tail.sizes_[d];
    }
    return joined;
  }
  // With another size >= 0 of `dim`, and without it; `dim` in [0, rank()).
  Shape WithSize(int dim, int64_t size) const {
    Shape changed = *this;
    changed.sizes_[dim] = size;
    return changed;
  }
  // With a new dimension `dim` of this size; `dim` in [0, rank()].
  Shape WithDim(int dim, int64_t size) const {
    return Prefix(dim).Concat({size}).Concat(Suffix(dim));
  }
  Shape WithoutDim(int dim) const {
    Shape changed = *this;
    --changed.rank_;
    for (int d = dim; d < changed.rank_; ++d) changed.sizes_[d] = sizes_[d + 1];
    return changed;
  }
  bool StartsWith(const Shape& prefix) const {
    return rank_ >= prefix.rank_ && SameSizes(prefix, prefix.rank_);
  }

  std::string ToString() const;  // "[3, 4]"
  friend std::ostream& operator<<(std::ostream& os, const Shape& shape);

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.SameSizes(b, a.rank_);
  }

 private:
  explicit Shape(absl::Span<const int64_t> sizes)
      : rank_(static_cast<int>(std::min<size_t>(sizes.size(), kMaxRank))) {
    for (int d = 0; d < rank_; ++d) sizes_[d] = std::max<int64_t>(sizes[d], 0);
  }

  // A loop: for so few sizes the call of memcmp would take longer.
  bool SameSizes(const Shape& other, int count) const {
    for (int d = 0; d < count; ++d) {
      if (sizes_[d] != other.sizes_[d]) return false;
    }
    return true;
  }

  tensor_internal::PerDim sizes_;
  int rank_ = 0;
};

}  // namespace rill

#endif  // RILL_TENSORS_SHAPE_H_
