// SPDX-License-Identifier: Apache-2.0
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/tensor.h"

namespace rill {

absl::StatusOr<Tensor> Cast(const Tensor& tensor, DType dtype) {
  if (!tensor_internal::HasArithmetic(tensor.dtype()) ||
      !tensor_internal::HasArithmetic(dtype)) {
    return InvalidArgument(
        "Cast: got ", DTypeName(tensor.dtype()), " to ", DTypeName(dtype),
        ", want dtypes with arithmetic (bool, uint8, int8 to int64, float16, "
        "bfloat16, float32, float64)");
  }
  if (!tensor.is_host()) {
    return InvalidArgument("Cast: the tensor is on ",
                           tensor.device().ToString(),
                           ", want host memory; use To(Device::Cpu()) first");
  }
  if (dtype == tensor.dtype()) return tensor;
  RILL_ASSIGN_OR_RETURN(const Tensor from, tensor.Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor to, Tensor::Empty(dtype, tensor.shape()));
  CastElements(from.dtype(), dtype, from.raw_data(), to.raw_data(),
               from.num_elements());
  return to;
}

}  // namespace rill
