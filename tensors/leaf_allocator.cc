// SPDX-License-Identifier: Apache-2.0
// One allocation serves many leaves; each is a view of it. Plan adds up sizes,
// so the first Make knows the size of the buffer.
#include "rill/tensors/leaf_allocator.h"

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/tensor_layout.h"

namespace rill::tensor_internal {
namespace {

// A cache line, and the alignment that vector loads like best.
constexpr int64_t kAlignment = 64;
constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max();

}  // namespace

int64_t LeafAllocator::SharedBytes(DType dtype, const Shape& shape) const {
  const int64_t bytes =
      MultiplySaturating(shape.num_elements(), DTypeSize(dtype));
  if (bytes > max_shared_bytes_) return 0;
  // Rounded up to the alignment; saturated, so that Make can refuse it.
  return bytes > kMaxBytes - kAlignment
             ? kMaxBytes
             : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void LeafAllocator::Plan(DType dtype, const Shape& shape) {
  if (__builtin_add_overflow(planned_bytes_, SharedBytes(dtype, shape),
                             &planned_bytes_)) {
    planned_bytes_ = kMaxBytes;
  }
}

absl::StatusOr<Tensor> LeafAllocator::Make(DType dtype, const Shape& shape) {
  const int64_t bytes = SharedBytes(dtype, shape);
  // Too large to share, or without elements.
  if (bytes == 0) return Tensor::Empty(dtype, shape, options_);
  if (planned_bytes_ == kMaxBytes) {
    return InvalidArgument(
        "LeafAllocator::Make: the bytes of all leaves, among them ",
        DTypeName(dtype), shape.ToString(),
        ", do not fit in int64, want at most ", kMaxBytes);
  }
  // At the first leaf, when all have been planned.
  if (buffer_ == nullptr) {
    // Pageable memory of a device is its own memory: Options have it as
    // default.
    const bool to_device = !options_.device.is_cpu() &&
                           options_.memory_kind == MemoryKind::kPageable;
    RILL_ASSIGN_OR_RETURN(
        buffer_, Buffer::Allocate(
                     planned_bytes_, options_.device,
                     to_device ? MemoryKind::kDevice : options_.memory_kind));
  }
  std::byte* const data = buffer_->data() + used_bytes_;
  used_bytes_ += bytes;
  return Tensor(buffer_, data, dtype, shape);
}

}  // namespace rill::tensor_internal
