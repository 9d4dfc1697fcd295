// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_CAST_ELEMENTS_H_
#define RILL_TENSORS_CAST_ELEMENTS_H_

#include <cstddef>
#include <cstdint>

#include "rill/tensors/dtype.h"

namespace rill {

// Casts `count` elements as Cast (tensor.h) does, for those who hold bytes and
// no Tensor. Both dtypes have arithmetic; `in` and `out` are contiguous,
// aligned to their types, and do not overlap.
// Thread-safety: thread-safe. Cost: O(count), with vectors between float32 and
// the usual dtypes.
void CastElements(DType from, DType to, const std::byte* in, std::byte* out,
                  int64_t count);

}  // namespace rill

#endif  // RILL_TENSORS_CAST_ELEMENTS_H_
