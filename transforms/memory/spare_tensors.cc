// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/memory/spare_tensors.h"

#include <algorithm>

#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/element.h"

namespace rill::transforms_internal {

// Tensors are found by layout, never by key: transforms ask for the few layouts
// of their states. A tensor is free when `made_` holds the last reference to
// it, which MayReuse finds by the count of the buffer's holders. So nothing has
// to be given back, and a caller that keeps a tensor for ever only costs one
// place.
absl::StatusOr<Tensor> SpareTensors::Take(DType dtype, const Shape& shape,
                                          const Tensor::Options& memory) {
  {
    // Inside the lock a copy is returned, so that no second caller finds the
    // tensor free.
    absl::MutexLock lock(&mutex_);
    for (const Tensor& tensor : made_) {
      // Others hold most of those before the first free one.
      if (tensor.buffer().use_count() == 1 &&
          MayReuse(tensor, dtype, shape, {}, {.memory = memory})) {
        return tensor;
      }
    }
  }
  // Outside the lock: an allocation may be slow.
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(dtype, shape, memory));
  absl::MutexLock lock(&mutex_);
  if (made_.size() < most_) {
    made_.push_back(tensor);
    return tensor;
  }
  // One of another size, which nobody holds, goes.
  for (size_t i = 0; i < made_.size(); ++i) {
    Tensor& oldest = made_[(next_ + i) % made_.size()];
    if (oldest.buffer().use_count() > 1) continue;
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

absl::StatusOr<Tensor> SpareTensors::Cast(const Tensor& tensor, DType dtype) {
  // Without a new tensor: the tensor itself, or the error.
  if (tensor.dtype() == dtype ||
      !tensor_internal::HasArithmetic(tensor.dtype())) {
    return rill::Cast(tensor, dtype);
  }
  RILL_ASSIGN_OR_RETURN(Tensor cast, Take(dtype, tensor.shape()));
  CastElements(tensor.dtype(), dtype, tensor.raw_data(), cast.raw_data(),
               tensor.num_elements());
  return cast;
}

void SpareTensors::KeepUpTo(size_t most) {
  absl::MutexLock lock(&mutex_);
  most_ = std::max(most_, most);
}

}  // namespace rill::transforms_internal
