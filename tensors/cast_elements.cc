// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/cast_elements.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "rill/tensors/cast_kernels.h"
#include "rill/tensors/element.h"

namespace rill {
namespace {

using tensor_internal::AsDouble;
using tensor_internal::DispatchDType;
using tensor_internal::FromDouble;
using tensor_internal::kHasArithmetic;
using tensor_internal::kIsReal;
using tensor_internal::LoadElement;

// A float outside int64, whose cast C++ leaves undefined, becomes the lowest
// value, as on x86. NaN fails the comparison and becomes it too.
int64_t Truncate(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(value >= -kTwoTo63 && value < kTwoTo63)) {
    return std::numeric_limits<int64_t>::min();
  }
  return static_cast<int64_t>(value);
}

// The value of one element: to bool whether it is not 0, from floats to
// integers towards zero, between integers modulo 2^n.
template <typename To, typename From>
To CastElement(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, float> && std::is_integral_v<From>) {
    return static_cast<float>(value);  // One rounding, not two.
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsReal<From>) return AsDouble(value) != 0;
    if constexpr (!kIsReal<From>) return value != 0;
  } else if constexpr (kIsReal<To>) {
    // Every number is a double on the way; an int64 above 2^53 is rounded by
    // that.
    return FromDouble<To>(AsDouble(value));
  } else if constexpr (kIsReal<From>) {
    // By way of int64, so that a float outside of a small integer wraps as an
    // integer does, and is not undefined.
    return static_cast<To>(Truncate(AsDouble(value)));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

void CastElements(DType from, DType to, const std::byte* in, std::byte* out,
                  int64_t count) {
  if (from == to) {
    std::memcpy(out, in, static_cast<size_t>(count * DTypeSize(from)));
    return;
  }
  // The casts that training needs have vector kernels; the rest are loops over
  // two dispatched types.
  if (tensor_internal::CastWithVectors(from, to, in, out, count)) return;
  DispatchDType(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    DispatchDType(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      // Dtypes without arithmetic are excluded by the callers; no code is made
      // for them.
      if constexpr (kHasArithmetic<From> && kHasArithmetic<To>) {
        To* const values = reinterpret_cast<To*>(out);
        for (int64_t i = 0; i < count; ++i) {
          values[i] = CastElement<To>(
              LoadElement<From>(in + i * static_cast<int64_t>(sizeof(From))));
        }
      }
    });
  });
}

}  // namespace rill
