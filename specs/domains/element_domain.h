// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_DOMAINS_ELEMENT_DOMAIN_H_
#define RILL_SPECS_DOMAINS_ELEMENT_DOMAIN_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/specs/domains/domain.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// Domains in which each element has a range of its own: Unbounded, Bounded and
// Binary.
namespace rill::tensor_internal {

// A range for all dtypes: everything unless set. Two forms, since int64 above
// 2^53 would be rounded as double.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();  // Floating point.
  double high = std::numeric_limits<double>::infinity();
  int64_t least = std::numeric_limits<int64_t>::min();  // Bool and integers.
  int64_t most = std::numeric_limits<int64_t>::max();
  // Members are whole numbers in floating point too.
  bool is_discrete = false;
};

// 0 .. most.
inline Limits OptionLimits(int64_t most) {
  return {0, static_cast<double>(most), 0, most, true};
}

// [low, high] of type T, in doubles for real types and in int64 for bool and
// integers of the group with arithmetic.
template <typename T>
struct Range {
  using Number = std::conditional_t<kIsReal<T>, double, int64_t>;
  Number low;
  Number high;
};

// A value of T as the type of its ranges.
template <typename T>
typename Range<T>::Number NumberOf(T value) {
  if constexpr (kIsReal<T>) {
    return AsDouble(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

// A number that T can hold, such as a bound of a Range.
template <typename T, typename Number>
T FromNumber(Number number) {
  if constexpr (kIsReal<T>) {
    return FromDouble<T>(static_cast<double>(number));
  } else {
    return static_cast<T>(number);
  }
}

// The limits cut to what T can hold; low > high where that is nothing.
template <typename T>
Range<T> RangeOf(const Limits& limits) {
  if constexpr (kIsReal<T>) {
    return {AsDouble(FromDouble<T>(limits.low)),
            AsDouble(FromDouble<T>(limits.high))};
  } else {
    return {std::max<int64_t>(limits.least, std::numeric_limits<T>::min()),
            std::min<int64_t>(limits.most, std::numeric_limits<T>::max())};
  }
}

// The range of each element, where the spec has bounds by element too.
template <typename T>
class Ranges {
 public:
  Ranges(const LeafSpec& spec, const Limits& limits)
      : all_(RangeOf<T>(limits)),
        period_(std::max<int64_t>(spec.shape.num_elements(), 1)) {
    if (spec.lows() == nullptr) return;
    lows_ = spec.lows()->raw_data();
    highs_ = spec.highs()->raw_data();
  }

  // The bounds of element `i` of batches of rows of the spec's shape.
  Range<T> operator[](int64_t i) const {
    if (lows_ == nullptr) return all_;
    const int64_t at = i % period_ * static_cast<int64_t>(sizeof(T));
    return {NumberOf(LoadElement<T>(lows_ + at)),
            NumberOf(LoadElement<T>(highs_ + at))};
  }

 private:
  Range<T> all_;
  int64_t period_;
  const std::byte* lows_ = nullptr;
  const std::byte* highs_ = nullptr;
};

template <typename T>
T At(const Tensor& host, int64_t i) {
  return LoadElement<T>(host.raw_data() + i * static_cast<int64_t>(sizeof(T)));
}

// In the range, and a whole number where the domain is `discrete`.
template <typename T>
bool IsMember(T value, const Range<T>& range, bool discrete) {
  const auto number = NumberOf(value);
  // Not the other way round: NaN is no member.
  if (!(number >= range.low && number <= range.high)) return false;
  if constexpr (kIsReal<T>) return !discrete || number == std::floor(number);
  return true;
}

// The nearest value of the range. int64 is compared as int64, without rounding.
template <typename T>
T Clamped(T value, const Range<T>& range, bool discrete) {
  auto number = NumberOf(value);
  if constexpr (kIsReal<T>) {
    if (std::isnan(number)) number = 0;
    if (discrete) number = std::nearbyint(number);  // Half to even.
  }
  // Bounds are values of T: no rounding.
  return FromNumber<T>(std::clamp(number, range.low, range.high));
}

// Every element against its own range. Stops at the first that is outside.
absl::Status CheckElements(absl::string_view key, const LeafSpec& spec,
                           const Limits& limits, const Tensor& host);
// Draws each element: uniform between two bounds, behind one bound exponential
// with mean 1, without bounds standard normal.
void FillRandom(const LeafSpec& spec, const Limits& limits, const Rng& rng,
                uint64_t batch, const Tensor& out);

class ElementDomain : public LeafDomain {
 public:
  absl::Status CheckDomain(const LeafSpec& spec) const override {
    return CheckTables(spec);
  }
  absl::Status CheckValues(absl::string_view key, const LeafSpec& spec,
                           const Shape&, const Tensor& tensor) const override {
    return CheckElements(key, spec, LimitsOf(spec), tensor);
  }
  void Project(const LeafSpec& spec, const Shape& batch_shape,
               const Tensor& tensor) const override;
  void Random(const LeafSpec& spec, const Shape&, const Rng& rng,
              uint64_t batch, const Tensor& out) const override {
    FillRandom(spec, LimitsOf(spec), rng, batch, out);
  }
  std::optional<std::vector<Digit>> Digits(const LeafSpec& spec) const override;

 protected:
  ~ElementDomain() = default;

 private:
  // Those of all elements, where they have none of their own.
  virtual Limits LimitsOf(const LeafSpec& spec) const = 0;
};

}  // namespace rill::tensor_internal

#endif  // RILL_SPECS_DOMAINS_ELEMENT_DOMAIN_H_
