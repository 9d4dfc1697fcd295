// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_POWER_H_
#define RILL_SAMPLERS_PRIORITIZED_POWER_H_

#include "absl/types/span.h"

namespace rill::samplers_internal {

// powers[i] = bases[i] ^ exponent, the same bits on every machine, which
// std::pow does not promise: additions, multiplications and divisions in one
// fixed order, never fused.
//
// Bases are finite, normal and > 0 (0 passes for about 2^-1023), the exponent
// is finite. Powers are limited to
// [kMinPower, kMaxPower], so that 2^60 of them can be added up and none is 0.
// Numerics: relative error below (2 + |y|) * 4e-16 for y = log2 of the power;
//   exact where the exponent is 0 or 1, or base and power are powers of 2.
// Thread-safety: immutable.
// Cost: about 2 ns a power with 256-bit vectors. `powers` may be `bases`.
inline constexpr double kMinPower = 0x1p-1000;
inline constexpr double kMaxPower = 0x1p960;
void Power(absl::Span<const double> bases, double exponent,
           absl::Span<double> powers);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_POWER_H_
