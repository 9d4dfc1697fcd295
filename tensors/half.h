// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_HALF_H_
#define RILL_TENSORS_HALF_H_

#include "rill/tensors/dtype.h"

namespace rill {

// Values of the 16-bit floating-point types, and back with one rounding to
// nearest, ties to even (also from double). What is too large becomes infinite;
// NaN stays NaN. Thread-safety: thread-safe.
double ToDouble(Float16 value);
double ToDouble(BFloat16 value);
Float16 ToFloat16(double value);
BFloat16 ToBFloat16(double value);

}  // namespace rill

#endif  // RILL_TENSORS_HALF_H_
