// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_LEAF_ALLOCATOR_H_
#define RILL_TENSORS_LEAF_ALLOCATOR_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::tensor_internal {

// Makes many tensors with few allocations: those of up to `max_shared_bytes`
// lie in one buffer, each at a multiple of 64 bytes. Call Plan for every
// tensor, then Make for the same ones in the same order.
// Thread-safety: thread-compatible.
class LeafAllocator {
 public:
  // Small leaves share: freeing one of them alone would give little back.
  static constexpr int64_t kMaxSharedBytes = 64 * 1024;
  static constexpr int64_t kShareAll = std::numeric_limits<int64_t>::max();

  explicit LeafAllocator(const Tensor::Options& options,
                         int64_t max_shared_bytes = kMaxSharedBytes)
      : options_(options), max_shared_bytes_(max_shared_bytes) {}

  const Tensor::Options& options() const { return options_; }

  void Plan(DType dtype, const Shape& shape);
  absl::StatusOr<Tensor> Make(DType dtype, const Shape& shape);

 private:
  // Bytes that the tensor takes in the shared buffer; 0 if it is on its own.
  int64_t SharedBytes(DType dtype, const Shape& shape) const;

  Tensor::Options options_;
  int64_t max_shared_bytes_;
  int64_t planned_bytes_ = 0;
  int64_t used_bytes_ = 0;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORS_LEAF_ALLOCATOR_H_
