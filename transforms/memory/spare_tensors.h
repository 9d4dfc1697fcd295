// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_MEMORY_SPARE_TENSORS_H_
#define RILL_TRANSFORMS_MEMORY_SPARE_TENSORS_H_

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::transforms_internal {

// Tensors of states that came and went, to be used again. A call sets new
// tensors for what it changes in a state; once states come and go it allocates
// none of them.
// Thread-safety: thread-safe.
class SpareTensors {
 public:
  // Keeps so many at most: those of a state, of the one that it becomes, and
  // some that others hold.
  explicit SpareTensors(size_t most) : most_(most) {}

  // A tensor in such memory that nobody else holds, with any values.
  absl::StatusOr<Tensor> Take(DType dtype, const Shape& shape,
                              const Tensor::Options& memory = {});
  // The same with the values of `tensor`, which lies in host memory.
  absl::StatusOr<Tensor> Copy(const Tensor& tensor);
  // The same as Cast (tensor.h) gives it, which is the tensor itself where it
  // has the dtype; the tensor is contiguous.
  absl::StatusOr<Tensor> Cast(const Tensor& tensor, DType dtype);
  // Keeps so many from now on, if that is more.
  void KeepUpTo(size_t most);

 private:
  absl::Mutex mutex_;
  size_t most_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> made_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // To go when there are too many.
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_MEMORY_SPARE_TENSORS_H_
