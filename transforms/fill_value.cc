// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/fill_value.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::transforms_internal {

absl::StatusOr<Tensor> FillValue(absl::string_view caller,
                                 absl::string_view key, double value,
                                 DType dtype, const Shape& shape) {
  if (value == 0 && !std::signbit(value)) return Tensor::Zeros(dtype, shape);
  const absl::StatusOr<Tensor> element =
      LeafSpec::Unbounded(dtype, {}).Encode({value});
  if (!element.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": \"", key, "\": fill value: got ", value,
                     ", want one of ", DTypeName(dtype)));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor filled, element->Expand(shape));
  return filled.Contiguous();
}

absl::StatusOr<LeafSpec> WithFillValue(absl::string_view caller,
                                       absl::string_view key, double value,
                                       const LeafSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const Tensor filled,
                        FillValue(caller, key, value, spec.dtype, spec.shape));
  if (spec.Contains(filled)) return spec;
  return LeafSpec::Unbounded(spec.dtype, spec.shape);
}

}  // namespace rill::transforms_internal
