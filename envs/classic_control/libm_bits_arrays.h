// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_ARRAYS_H_
#define RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_ARRAYS_H_

#include "absl/types/span.h"

namespace rill::envs_internal {

// Results of libm_bits-inl.h for each element, for its test. All spans are of
// one length.
struct LibmBitsOfArray {
  absl::Span<double> sine, cosine;
  absl::Span<double> small_sine, small_cosine;  // Of SinCosOfSmall.
  absl::Span<double> only_cosine;               // Of Cos.
  absl::Span<double> power;
};
void ComputeLibmBits(absl::Span<const double> x, const LibmBitsOfArray& to);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_CLASSIC_CONTROL_LIBM_BITS_ARRAYS_H_
