// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_LEAF_RANGE_H_
#define RILL_TENSORDICT_LEAF_RANGE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rill/tensordict/element.h"
#include "rill/tensordict/spec.h"

// The values that a LeafSpec admits, for the .cc files of this package.
namespace rill::tensordict_internal {

// The members of a domain of type T: [low, high], in doubles for real types and
// in int64 for bool and integers of the group with arithmetic.
template <typename T>
struct Range {
  using Number = std::conditional_t<kIsReal<T>, double, int64_t>;
  Number low;
  Number high;
};

inline int64_t ToInt64(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (value >= kTwoTo63) return std::numeric_limits<int64_t>::max();
  if (value < -kTwoTo63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

template <typename T>
Range<T> LargestRange() {
  if constexpr (kIsReal<T>) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {-kInfinity, kInfinity};
  } else {
    return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  }
}

// The domain cut to what T can hold; low > high where that is nothing.
template <typename T>
Range<T> RangeOf(const LeafSpec& spec) {
  Range<T> range = LargestRange<T>();
  const auto cut = [&](auto low, auto high) {
    using Number = typename Range<T>::Number;
    range.low = std::max(range.low, static_cast<Number>(low));
    range.high = std::min(range.high, static_cast<Number>(high));
  };
  switch (spec.domain) {
    case LeafSpec::Domain::kUnbounded:
      break;
    case LeafSpec::Domain::kBounded:
      if constexpr (kIsReal<T>) {
        cut(AsDouble(FromDouble<T>(spec.low)),
            AsDouble(FromDouble<T>(spec.high)));
      } else {
        cut(ToInt64(std::ceil(spec.low)), ToInt64(std::floor(spec.high)));
      }
      break;
    case LeafSpec::Domain::kCategorical:
      cut(int64_t{0}, spec.num_categories - 1);
      break;
    case LeafSpec::Domain::kBinary:
      cut(int64_t{0}, int64_t{1});
      break;
  }
  return range;
}

// Whether members are whole numbers.
inline bool IsDiscrete(LeafSpec::Domain domain) {
  return domain == LeafSpec::Domain::kCategorical ||
         domain == LeafSpec::Domain::kBinary;
}

}  // namespace rill::tensordict_internal

#endif  // RILL_TENSORDICT_LEAF_RANGE_H_
