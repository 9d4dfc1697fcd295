// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_CONSOLIDATED_JAGGED_H_
#define RILL_FORMATS_CONSOLIDATED_JAGGED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// Rows that differ in one dimension, as TorchRL's nested tensors of jagged
// layout have them: joined along that dimension, and where each one starts.
// Thread-safety: thread-compatible.
struct Jagged {
  Tensor values;       // The rows' rank; host memory unless it is a view.
  Tensor offsets;      // int64 [n + 1]; row i is [offsets[i], offsets[i + 1]).
  int ragged_dim = 0;  // Of `values`.
};

// A view where the rows differ in dimension 0, else a copy. INVALID_ARGUMENT
// where they differ in several, or have none.
absl::StatusOr<Jagged> ToJagged(const RaggedTensor& rows);

// Row i is [offsets[i], offsets[i + 1]) of host memory along `ragged_dim`, or
// where `lengths` are given the first lengths[i] of it. A view where the rows
// lie one behind the other and leave nothing out, else a copy.
// INVALID_ARGUMENT where offsets fall or lead outside, or a length does not
// fit.
absl::StatusOr<RaggedTensor> FromJagged(const Tensor& values,
                                        absl::Span<const int64_t> offsets,
                                        absl::Span<const int64_t> lengths,
                                        int ragged_dim);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_CONSOLIDATED_JAGGED_H_
