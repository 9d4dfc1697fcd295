// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/spare/spare_tensors.h"

#include "rill/base/status_macros.h"
#include "rill/tensordict/bound_rows.h"

namespace rill::transforms_internal {

absl::StatusOr<Tensor> SpareTensors::Take(DType dtype, const Shape& shape) {
  {
    absl::MutexLock lock(&mutex_);
    for (const Tensor& tensor : made_) {
      if (MayReuse(tensor, dtype, shape, {}, {})) return tensor;
    }
  }
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(dtype, shape));
  absl::MutexLock lock(&mutex_);
  if (made_.size() < most_) {
    made_.push_back(tensor);
    return tensor;
  }
  // One of another size, which nobody holds, goes.
  for (size_t i = 0; i < made_.size(); ++i) {
    Tensor& oldest = made_[(next_ + i) % made_.size()];
    if (!MayReuse(oldest, oldest.dtype(), oldest.shape(), {}, {})) continue;
    oldest = tensor;
    next_ = (next_ + i + 1) % made_.size();
    break;
  }
  return tensor;
}

absl::StatusOr<Tensor> SpareTensors::Copy(const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(Tensor copy, Take(tensor.dtype(), tensor.shape()));
  RILL_RETURN_IF_ERROR(copy.CopyFrom(tensor));
  return copy;
}

}  // namespace rill::transforms_internal
