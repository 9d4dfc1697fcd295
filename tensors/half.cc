// SPDX-License-Identifier: Apache-2.0
// The vector kernels (cast_kernels.cc) give the same bits.
#include "rill/tensors/half.h"

#include "rill/tensors/dtype.h"
#include "rill/tensors/half_codec.h"

namespace rill {

using tensor_internal::BFloat16Codec;
using tensor_internal::Float16Codec;

double ToDouble(Float16 value) { return Float16Codec::Decode(value.bits); }
double ToDouble(BFloat16 value) { return BFloat16Codec::Decode(value.bits); }
Float16 ToFloat16(double value) { return {Float16Codec::Encode(value)}; }
BFloat16 ToBFloat16(double value) { return {BFloat16Codec::Encode(value)}; }

}  // namespace rill
