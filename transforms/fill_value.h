// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_FILL_VALUE_H_
#define RILL_TRANSFORMS_FILL_VALUE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {

// The leaf where there is no row: `value` in every element, contiguous. 0 is of
// every dtype; floating point is rounded. INVALID_ARGUMENT, naming the key,
// where the dtype has no such value (NaN as an integer).
absl::StatusOr<Tensor> FillValue(absl::string_view caller,
                                 absl::string_view key, double value,
                                 DType dtype, const Shape& shape);

// The domain of values of `spec` and such ones: `spec` itself where it has
// them, else no bounds.
absl::StatusOr<LeafSpec> WithFillValue(absl::string_view caller,
                                       absl::string_view key, double value,
                                       const LeafSpec& spec);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_FILL_VALUE_H_
