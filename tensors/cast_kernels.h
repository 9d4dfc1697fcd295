// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_CAST_KERNELS_H_
#define RILL_TENSORS_CAST_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "rill/tensors/dtype.h"

namespace rill::tensor_internal {

// Casts `count` elements with the widest vectors of the processor, if there is
// a kernel for the pair. Pairs: bool, uint8, int8, int16, int32, float16,
// bfloat16 and float64 to float32; float32 to float16, bfloat16 and float64.
// Else returns false. The result is that of Cast, bit for bit, on every
// processor.
// Thread-safety: thread-safe. Both sides contiguous and aligned to their type.
bool CastWithVectors(DType from, DType to, const std::byte* in, std::byte* out,
                     int64_t count);

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_CAST_KERNELS_H_
