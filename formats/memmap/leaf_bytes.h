// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_LEAF_BYTES_H_
#define RILL_FORMATS_MEMMAP_LEAF_BYTES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// The elements of `tensor` as files hold them: row-major, nothing between.
// Gives them to `sink` in order, in one piece or several, copying only what
// does not lie like that (device memory, strides), 8 MiB at a time.
// Thread-safety: thread-safe.
absl::Status ForEachPiece(
    const Tensor& tensor,
    absl::FunctionRef<absl::Status(absl::string_view)> sink);

// Bytes of the elements of a tensor that a file announces. INVALID_ARGUMENT
// where they do not fit in int64; `where` starts the message.
absl::StatusOr<int64_t> LeafBytes(absl::string_view where, DType dtype,
                                  const Shape& shape);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_LEAF_BYTES_H_
