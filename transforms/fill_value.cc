// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/fill_value.h"

#include <cmath>

#include "rill/base/status_macros.h"

namespace rill::transforms_internal {

absl::StatusOr<Tensor> FillValue(absl::string_view caller,
                                 absl::string_view key, double value,
                                 DType dtype, const Shape& shape) {
  // +0 is all bits zero in every dtype. -0 is not, and keeps its sign.
  if (value == 0 && !std::signbit(value)) return Tensor::Zeros(dtype, shape);
  // Encode refuses what the dtype cannot hold, and rounds floating point.
  const absl::StatusOr<Tensor> element =
      LeafSpec::Unbounded(dtype, {}).Encode({value});
  if (!element.ok()) {
    return InvalidArgument(caller, ": \"", key, "\": fill value: got ", value,
                           ", want one of ", DTypeName(dtype));
  }
  // The expanded tensor has strides of 0; callers copy its bytes as a row.
  RILL_ASSIGN_OR_RETURN(const Tensor filled, element->Expand(shape));
  return filled.Contiguous();
}

absl::StatusOr<LeafSpec> WithFillValue(absl::string_view caller,
                                       absl::string_view key, double value,
                                       const LeafSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const Tensor filled,
                        FillValue(caller, key, value, spec.dtype, spec.shape));
  // A domain that has no room for the value is given up. Wider bounds would
  // promise more than is known of the other values.
  if (spec.Contains(filled)) return spec;
  return LeafSpec::Unbounded(spec.dtype, spec.shape);
}

}  // namespace rill::transforms_internal
