// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TESTING_TENSOR_MATCHERS_H_
#define RILL_TESTING_TENSOR_MATCHERS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// GoogleMock matchers for Tensor and TensorDict. A mismatch names the first
// element (or key) that differs, with both values. Tensors may be strided, and
// on any device: they are copied to the host to be looked at.
//
//   EXPECT_THAT(t, TensorIs(DType::kFloat32, Shape({2, 3})));
//   EXPECT_THAT(t, TensorElementsAre<float>(1, 2, 3, 4, 5, 6));
//   EXPECT_THAT(dict.Get("a"), IsOkAndHolds(TensorNear(want, /*max_ulp=*/1)));
//   EXPECT_THAT(dict, BitEqualTo(other));
//   EXPECT_THAT(dict, HasKeys("observation", "next/reward"));
namespace rill {
namespace testing_internal {

// All matchers of this file are this: a description, and a function that gives
// "" for a match or says what differs.
template <typename Value>
class DifferenceMatcher {
 public:
  using is_gtest_matcher = void;
  using Function = std::function<std::string(const Value&)>;

  DifferenceMatcher(std::string description, Function difference)
      : description_(std::move(description)),
        difference_(std::move(difference)) {}

  bool MatchAndExplain(const Value& value,
                       ::testing::MatchResultListener* listener) const {
    const std::string difference = difference_(value);
    if (!difference.empty()) *listener << difference;
    return difference.empty();
  }
  void DescribeTo(std::ostream* os) const { *os << "is " << description_; }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "is not " << description_;
  }

 private:
  std::string description_;
  Function difference_;
};

using TensorMatcher = DifferenceMatcher<Tensor>;
using TensorDictMatcher = DifferenceMatcher<TensorDict>;

// The elements of `want` (contiguous, host) against those of a tensor of any
// shape with as many; elements that are == or both NaN are equal.
TensorMatcher ElementsMatcher(Tensor want);
TensorDictMatcher KeysMatcher(std::vector<std::string> keys);

}  // namespace testing_internal

// Has this dtype and shape.
testing_internal::TensorMatcher TensorIs(DType dtype, const Shape& shape);

// Has dtype T and just these elements, row-major, whatever its shape. Elements
// are compared with ==, and NaN equals NaN.
template <typename T, typename... Values>
testing_internal::TensorMatcher TensorElementsAre(Values... values) {
  const std::array<T, sizeof...(Values)> array = {static_cast<T>(values)...};
  return testing_internal::ElementsMatcher(*Tensor::From(
      absl::Span<const T>(array), {static_cast<int64_t>(sizeof...(Values))}));
}

// Has the same dtype and shape, and each element is at most `max_ulp`
// representable values away (floating point; others must be equal). NaN is near
// NaN only; 0 and -0 are equal.
testing_internal::TensorMatcher TensorNear(Tensor want, int64_t max_ulp);

// Has the same dtype, shape and bits / the same batch shape and leaves.
testing_internal::TensorMatcher BitEqualTo(Tensor want);
testing_internal::TensorDictMatcher BitEqualTo(TensorDict want);

// Has leaves of just these keys, in any order.
template <typename... Keys>
testing_internal::TensorDictMatcher HasKeys(Keys... keys) {
  return testing_internal::KeysMatcher({std::string(keys)...});
}

}  // namespace rill

#endif  // RILL_TESTING_TENSOR_MATCHERS_H_
