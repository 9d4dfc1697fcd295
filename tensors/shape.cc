// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/shape.h"

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// "[2, 3]".
std::string Text(absl::Span<const int64_t> sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]");
}

}  // namespace

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> sizes) {
  if (sizes.size() > kMaxRank) {
    return InvalidArgument("Shape::Create: rank of ", Text(sizes), ": got ",
                           sizes.size(), ", want at most ", kMaxRank);
  }
  // Sizes of 0 are left out of the product: [0, 2^40, 2^40] has no elements,
  // but strides that do not fit.
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 0) {
      return InvalidArgument("Shape::Create: a size in ", Text(sizes), ": got ",
                             size, ", want >= 0");
    }
    if (size > 0 && __builtin_mul_overflow(product, size, &product)) {
      return InvalidArgument("Shape::Create: the product of the sizes of ",
                             Text(sizes),
                             " does not fit in int64, want at most ",
                             std::numeric_limits<int64_t>::max());
    }
  }
  return Shape(sizes);
}

std::string Shape::ToString() const { return Text(sizes()); }

std::ostream& operator<<(std::ostream& os, const Shape& shape) {
  return os << shape.ToString();
}

}  // namespace rill
