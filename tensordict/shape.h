// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_SHAPE_H_
#define RILL_TENSORDICT_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace rill {

// The sizes of a tensor's dimensions, outermost first. A plain value without
// allocation.
//
// Thread-safety: thread-compatible.
// Limits: rank at most 8; sizes >= 0; their product fits in int64.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

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
  int64_t num_elements() const;

  // The first / last dimensions, and both joined. `count` in [0, rank()]; a
  // join past kMaxRank is cut (Create checks where it matters).
  Shape Prefix(int count) const;
  Shape Suffix(int from) const;
  Shape Concat(const Shape& tail) const;
  bool StartsWith(const Shape& prefix) const;

  std::string ToString() const;  // "[3, 4]"
  friend std::ostream& operator<<(std::ostream& os, const Shape& shape);

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.sizes() == b.sizes();
  }

 private:
  explicit Shape(absl::Span<const int64_t> sizes);

  std::array<int64_t, kMaxRank> sizes_ = {};
  int rank_ = 0;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_SHAPE_H_
