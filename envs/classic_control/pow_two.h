// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_POW_TWO_H_
#define RILL_ENVS_CLASSIC_CONTROL_POW_TWO_H_

#include <cmath>

namespace rill::envs_internal {

// std::pow(x, 2), whose bits are not always those of x * x. NumPy computes
// `x ** 2` of a scalar so.
//
// libm's pow is within 0.54 units of the last place (glibc). So it rounds as
// x * x does unless x^2 is within 0.04 of the middle between two doubles. The
// rounding error of x * x (Dekker, 1971) tells how near that is; one in ten
// asks libm.
inline double PowTwo(double x) {
  const double square = x * x;
  const double split = 134217729.0 * x;  // 2^27 + 1
  const double high = split - (split - x);
  const double low = x - high;
  const double error = ((high * high - square) + 2 * high * low) + low * low;
  constexpr double kNoUnderflow = 1e-280;  // Above it `error` is exact.
  if (square > kNoUnderflow && square + 1.1 * error == square) return square;
  volatile double two = 2;  // Compilers make x * x of a constant.
  return std::pow(x, two);
}

inline float PowTwo(float x) {
  volatile float two = 2;
  return std::pow(x, two);
}

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CLASSIC_CONTROL_POW_TWO_H_
