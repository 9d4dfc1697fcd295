// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_LEAF_RANGE_H_
#define RILL_TENSORDICT_LEAF_RANGE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/tensor.h"

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

// Exact.
template <typename T>
typename Range<T>::Number AsNumber(T value) {
  if constexpr (kIsReal<T>) {
    return AsDouble(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

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
    case LeafSpec::Domain::kOneHot:
    case LeafSpec::Domain::kMultiOneHot:
      cut(int64_t{0}, int64_t{1});
      break;
    case LeafSpec::Domain::kMultiCategorical: {
      // The widest; Choices knows each.
      int64_t most = 0;
      for (const int64_t n : spec.nvec()) most = std::max(most, n);
      cut(int64_t{0}, most - 1);
      break;
    }
  }
  return range;
}

// The range of each element, where they differ too.
template <typename T>
class Ranges {
 public:
  explicit Ranges(const LeafSpec& spec)
      : all_(RangeOf<T>(spec)),
        period_(std::max<int64_t>(spec.shape.num_elements(), 1)) {
    if (spec.lows() == nullptr) return;
    lows_ = spec.lows()->raw_data();
    highs_ = spec.highs()->raw_data();
  }

  // The bounds of element `i` of batches of rows of the spec's shape.
  Range<T> operator[](int64_t i) const {
    if (lows_ == nullptr) return all_;
    const int64_t at = i % period_ * static_cast<int64_t>(sizeof(T));
    return {AsNumber(LoadElement<T>(lows_ + at)),
            AsNumber(LoadElement<T>(highs_ + at))};
  }

 private:
  Range<T> all_;
  int64_t period_;
  const std::byte* lows_ = nullptr;
  const std::byte* highs_ = nullptr;
};

// A whole number as T, which can hold it.
template <typename T>
T FromInt(int64_t value) {
  if constexpr (kIsReal<T>) {
    return FromDouble<T>(static_cast<double>(value));
  } else {
    return static_cast<T>(value);
  }
}

// A bound of a Range, which is a value of T.
template <typename T>
T FromNumber(typename Range<T>::Number bound) {
  if constexpr (kIsReal<T>) {
    return FromDouble<T>(bound);
  } else {
    return static_cast<T>(bound);
  }
}

// An own copy on the host.
inline absl::StatusOr<Tensor> HostCopy(const Tensor& tensor) {
  if (!tensor.is_host()) return tensor.To(Device::Cpu());
  return tensor.Clone();
}

// Whether members are whole numbers.
inline bool IsDiscrete(LeafSpec::Domain domain) {
  return domain != LeafSpec::Domain::kUnbounded &&
         domain != LeafSpec::Domain::kBounded;
}

}  // namespace rill::tensordict_internal

#endif  // RILL_TENSORDICT_LEAF_RANGE_H_
