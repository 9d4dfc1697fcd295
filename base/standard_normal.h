// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BASE_STANDARD_NORMAL_H_
#define RILL_BASE_STANDARD_NORMAL_H_

#include <cmath>
#include <cstdint>
#include <numbers>

#include "rill/base/rng.h"

namespace rill {

// Maps the 128 bits of a draw (Rng::Bits) onto a standard normal, from both of
// their halves. Finite: at most 8.6 from 0.
// Source: Box, Muller, "A note on the generation of random normal deviates",
//   1958.
inline double StandardNormal(const Rng::Block& bits) {
  const double radius =
      std::sqrt(-2 * std::log1p(-UnitDouble(LowBits64(bits))));
  return radius * std::cos(2 * std::numbers::pi * UnitDouble(HighBits64(bits)));
}

}  // namespace rill

#endif  // RILL_BASE_STANDARD_NORMAL_H_
