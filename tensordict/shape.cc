// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/shape.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace rill {
namespace {

std::string Text(absl::Span<const int64_t> sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]");
}

}  // namespace

Shape::Shape(absl::Span<const int64_t> sizes)
    : rank_(static_cast<int>(std::min<size_t>(sizes.size(), kMaxRank))) {
  for (int d = 0; d < rank_; ++d) sizes_[d] = std::max<int64_t>(sizes[d], 0);
}

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> sizes) {
  if (sizes.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("Shape::Create: rank of ", Text(sizes), ": got ",
                     sizes.size(), ", want at most ", kMaxRank));
  }
  // Sizes of 0 are left out of the product: [0, 2^40, 2^40] has no elements,
  // but strides that do not fit.
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("Shape::Create: a size in ", Text(sizes), ": got ", size,
                       ", want >= 0"));
    }
    if (size > 0 && __builtin_mul_overflow(product, size, &product)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Shape::Create: the product of the sizes of ",
                       Text(sizes), " does not fit in int64, want at most ",
                       std::numeric_limits<int64_t>::max()));
    }
  }
  return Shape(sizes);
}

int64_t Shape::num_elements() const {
  int64_t product = 1;
  bool overflow = false;
  for (int d = 0; d < rank_; ++d) {
    if (sizes_[d] == 0) return 0;
    overflow |= __builtin_mul_overflow(product, sizes_[d], &product);
  }
  // Only a literal can get here: too large to be allocated, whatever it is.
  return overflow ? std::numeric_limits<int64_t>::max() : product;
}

Shape Shape::Prefix(int count) const {
  return Shape(sizes().subspan(0, std::clamp(count, 0, rank_)));
}

Shape Shape::Suffix(int from) const {
  return Shape(sizes().subspan(std::clamp(from, 0, rank_)));
}

Shape Shape::Concat(const Shape& tail) const {
  Shape joined = *this;
  for (int d = 0; d < tail.rank_ && joined.rank_ < kMaxRank; ++d) {
    joined.sizes_[joined.rank_++] = tail.sizes_[d];
  }
  return joined;
}

bool Shape::StartsWith(const Shape& prefix) const {
  return rank_ >= prefix.rank_ &&
         std::equal(prefix.sizes_.begin(), prefix.sizes_.begin() + prefix.rank_,
                    sizes_.begin());
}

std::string Shape::ToString() const { return Text(sizes()); }

std::ostream& operator<<(std::ostream& os, const Shape& shape) {
  return os << shape.ToString();
}

}  // namespace rill
