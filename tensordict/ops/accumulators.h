// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_OPS_ACCUMULATORS_H_
#define RILL_TENSORDICT_OPS_ACCUMULATORS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// The state that the reductions of reductions.h keep for each element of their
// result. `V` is int64_t (integers, bool) or double; Add is called for the
// elements in order.
namespace rill::ops_internal {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename V>
struct SumOf;
template <>
struct SumOf<int64_t> {
  uint64_t sum = 0;
  void Add(int64_t value) { sum += static_cast<uint64_t>(value); }
  int64_t Result() const { return static_cast<int64_t>(sum); }
};
template <>
struct SumOf<double> {
  double sum = 0;
  double lost = 0;  // What the additions rounded away.
  void Add(double value) {
    const double next = sum + value;
    lost += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value
                                               : (value - next) + sum;
    sum = next;
  }
  // With an infinity in it, `lost` is NaN.
  double Result() const { return std::isfinite(sum) ? sum + lost : sum; }
};

template <typename V>
struct ProductOf {
  std::conditional_t<std::is_same_v<V, double>, double, uint64_t> product = 1;
  void Add(V value) { product *= static_cast<decltype(product)>(value); }
  V Result() const { return static_cast<V>(product); }
};

struct MeanOf {
  SumOf<double> sum;
  int64_t count = 0;
  void Add(double value) {
    sum.Add(value);
    ++count;
  }
  double Result() const {
    return count == 0 ? kNaN : sum.Result() / static_cast<double>(count);
  }
};

struct NormOf {
  SumOf<double> squares;
  void Add(double value) { squares.Add(value * value); }
  double Result() const { return std::sqrt(squares.Result()); }
};

// Welford's.
struct VarianceOf {
  double mean = 0;
  double squares = 0;
  int64_t count = 0;
  void Add(double value) {
    const double distance = value - mean;
    mean += distance / static_cast<double>(++count);
    squares += distance * (value - mean);
  }
  double Result(int64_t correction) const {
    return count <= correction || count == 0
               ? kNaN
               : squares / (static_cast<double>(count) -
                            static_cast<double>(correction));
  }
};

// The least or the greatest, and where it is.
template <typename V, bool kLeast>
struct ExtremeOf {
  V best = 0;
  int64_t at = 0;
  int64_t count = 0;
  void Add(V value) {
    // A NaN is better than any number, the first one best.
    if (count == 0 ||
        (best == best &&
         (value != value || (kLeast ? value < best : best < value)))) {
      best = value;
      at = count;
    }
    ++count;
  }
};

}  // namespace rill::ops_internal

#endif  // RILL_TENSORDICT_OPS_ACCUMULATORS_H_
