// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_HALF_CODEC_H_
#define RILL_TENSORS_HALF_CODEC_H_

#include <cmath>
#include <cstdint>

namespace rill::tensor_internal {

// The bits of 16-bit floating-point types, for the host and for kernels of
// devices: no Abseil. By way of double, which holds each value exactly.

// A binary format of 16 bits: 1 sign, kExponent, kMantissa bits, in the
// layout of IEEE 754.
template <int kMantissa, int kExponent>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint16_t kInfinity = ((1 << kExponent) - 1) << kMantissa;

  static constexpr double Decode(uint16_t bits) {
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    const int exponent = (bits & kInfinity) >> kMantissa;
    const int mantissa = bits & ((1 << kMantissa) - 1);
    if (exponent == (1 << kExponent) - 1) {
      return std::copysign(mantissa != 0 ? NAN : INFINITY, sign);
    }
    // Exponent 0 is subnormal: no implicit bit, and the scale of exponent 1.
    const int implicit = exponent > 0 ? 1 << kMantissa : 0;
    return sign * std::ldexp(static_cast<double>(mantissa + implicit),
                             (exponent > 1 ? exponent : 1) - kBias - kMantissa);
  }

  // Rounded to nearest, ties to even.
  static constexpr uint16_t Encode(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    // The quiet NaN: the highest bit of the mantissa.
    if (std::isnan(value)) return sign | kInfinity | 1 << (kMantissa - 1);
    if (std::isinf(value)) return sign | kInfinity;
    if (value == 0) return sign;
    int exponent = 0;
    std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent).
    // The exponent of the last place: of the value's power of 2, but not below
    // that of the subnormals.
    const int power = exponent - 1 > 1 - kBias ? exponent - 1 : 1 - kBias;
    const int least = power - kMantissa;
    // In units of the last place; nearbyint rounds ties to even. The sum below
    // carries into the exponent where rounding goes up to the next power of 2.
    const auto units = static_cast<int64_t>(
        std::nearbyint(std::ldexp(std::fabs(value), -least)));
    // For a normal number one less than its exponent field, as `units` has the
    // implicit bit, which adds that one. For a subnormal number 0.
    const int64_t field = static_cast<int64_t>(least + kMantissa + kBias - 1);
    const int64_t bits = (field << kMantissa) + units;
    // Past the largest number the sum is beyond the pattern of infinity.
    return sign | static_cast<uint16_t>(bits < kInfinity ? bits : kInfinity);
  }
};

using Float16Codec = SmallFloat<10, 5>;
using BFloat16Codec = SmallFloat<7, 8>;

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_HALF_CODEC_H_
