// SPDX-License-Identifier: Apache-2.0
// A tensor is a view: buffer, address, dtype, shape and strides. The functions
// here make buffers or check that a view stays inside of one.
#include "rill/tensors/tensor.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

using tensor_internal::ReachOf;
using tensor_internal::RowMajorStrides;

// Bytes of a dense tensor. Sizes of 0 are left out of the check, so that
// strides of an empty tensor fit too; its own bytes are 0.
absl::StatusOr<int64_t> BytesOf(absl::string_view caller, DType dtype,
                                const Shape& shape) {
  int64_t bytes = DTypeSize(dtype);
  for (const int64_t size : shape.sizes()) {
    if (size > 0 && __builtin_mul_overflow(bytes, size, &bytes)) {
      return InvalidArgument(caller, ": bytes of ", DTypeName(dtype),
                             shape.ToString(),
                             " do not fit in int64, want at most ",
                             std::numeric_limits<int64_t>::max());
    }
  }
  return shape.num_elements() == 0 ? 0 : bytes;
}

// Complex numbers are aligned as their parts.
int64_t AlignmentOf(DType dtype) {
  switch (dtype) {
    case DType::kComplex64:
      return 4;
    case DType::kComplex128:
      return 8;
    default:
      return DTypeSize(dtype);
  }
}

// Whether all elements are aligned, given a shape that has some.
bool IsAligned(const std::byte* first, const Shape& shape,
               absl::Span<const int64_t> strides, DType dtype) {
  const int64_t alignment = AlignmentOf(dtype);
  if (reinterpret_cast<uintptr_t>(first) % alignment != 0) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] > 1 && strides[d] % alignment != 0) return false;
  }
  return true;
}

}  // namespace

Tensor::Tensor(std::shared_ptr<Buffer> buffer, std::byte* data, DType dtype,
               const Shape& shape)
    : buffer_(std::move(buffer)),
      data_(data),
      shape_(shape),
      strides_(RowMajorStrides(shape, DTypeSize(dtype))),
      dtype_(dtype) {}

absl::StatusOr<Tensor> Tensor::Empty(DType dtype, const Shape& shape,
                                     const Options& options) {
  RILL_ASSIGN_OR_RETURN(const int64_t bytes,
                        BytesOf("Tensor::Empty", dtype, shape));
  // Pageable is the default kind. For a device it means the device's own
  // memory.
  const MemoryKind kind =
      !options.device.is_cpu() && options.memory_kind == MemoryKind::kPageable
          ? MemoryKind::kDevice
          : options.memory_kind;
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                        Buffer::Allocate(bytes, options.device, kind));
  std::byte* data = buffer->data();
  return Tensor(std::move(buffer), data, dtype, shape);
}

absl::StatusOr<Tensor> Tensor::Empty(DType dtype, const Shape& shape) {
  return Empty(dtype, shape, Options());
}

absl::StatusOr<Tensor> Tensor::Zeros(DType dtype, const Shape& shape) {
  RILL_ASSIGN_OR_RETURN(Tensor zeros, Empty(dtype, shape));
  if (zeros.size_bytes() > 0) {
    std::memset(zeros.raw_data(), 0, static_cast<size_t>(zeros.size_bytes()));
  }
  return zeros;
}

absl::StatusOr<Tensor> Tensor::FromFlags(const std::vector<bool>& flags,
                                         const Shape& shape) {
  // vector<bool> has no bytes to copy from.
  const std::vector<uint8_t> bytes(flags.begin(), flags.end());
  return FromBytes(DType::kBool, shape, bytes.data(),
                   static_cast<int64_t>(bytes.size()));
}

absl::StatusOr<Tensor> Tensor::FromBytes(DType dtype, const Shape& shape,
                                         const void* values, int64_t count) {
  if (count != shape.num_elements()) {
    return InvalidArgument("Tensor::From: number of values for shape ",
                           shape.ToString(), ": got ", count, ", want ",
                           shape.num_elements());
  }
  RILL_ASSIGN_OR_RETURN(Tensor copy, Empty(dtype, shape));
  if (count > 0) {
    std::memcpy(copy.raw_data(), values,
                static_cast<size_t>(copy.size_bytes()));
  }
  return copy;
}

absl::StatusOr<Tensor> Tensor::View(std::shared_ptr<Buffer> buffer, DType dtype,
                                    const Shape& shape, int64_t offset_bytes,
                                    absl::Span<const int64_t> strides_bytes) {
  if (buffer == nullptr) {
    return InvalidArgument("Tensor::View: buffer is null");
  }
  if (static_cast<int>(strides_bytes.size()) != shape.rank()) {
    return InvalidArgument("Tensor::View: number of strides for shape ",
                           shape.ToString(), ": got ", strides_bytes.size(),
                           ", want ", shape.rank());
  }
  RILL_RETURN_IF_ERROR(BytesOf("Tensor::View", dtype, shape).status());
  const int64_t size = buffer->size_bytes();
  const bool is_empty = shape.num_elements() == 0;
  int64_t low = 0;
  int64_t high = 0;
  // Offsets come from files and other libraries: each number is checked for
  // overflow and against the buffer before an address is made.
  const bool fits =
      is_empty || ReachOf(shape, strides_bytes, DTypeSize(dtype), &low, &high);
  if (!fits || offset_bytes < 0 || offset_bytes > size ||
      offset_bytes + low < 0 || high > size - offset_bytes) {
    return InvalidArgument(
        "Tensor::View: elements of ", DTypeName(dtype), shape.ToString(),
        " with strides [", absl::StrJoin(strides_bytes, ", "), "] from offset ",
        offset_bytes, ": got ",
        fits ? absl::StrCat("bytes [offset + ", low, ", offset + ", high, ")")
             : "bytes past int64",
        ", want them inside the buffer's [0, ", size, ")");
  }
  std::byte* data = buffer->data() + offset_bytes;
  // Unaligned elements would be undefined behaviour in every loop over them.
  if (!is_empty && !IsAligned(data, shape, strides_bytes, dtype)) {
    return InvalidArgument("Tensor::View: offset ", offset_bytes,
                           " and strides [", absl::StrJoin(strides_bytes, ", "),
                           "] of ", DTypeName(dtype), shape.ToString(),
                           " must be multiples of ", AlignmentOf(dtype),
                           " bytes; copy the bytes to an aligned place");
  }
  Tensor view(std::move(buffer), data, dtype, shape);
  for (int d = 0; d < shape.rank(); ++d) view.strides_[d] = strides_bytes[d];
  return view;
}

absl::StatusOr<Tensor> Tensor::View(std::shared_ptr<Buffer> buffer, DType dtype,
                                    const Shape& shape, int64_t offset_bytes) {
  const auto strides = RowMajorStrides(shape, DTypeSize(dtype));
  return View(std::move(buffer), dtype, shape, offset_bytes,
              absl::MakeConstSpan(strides.data(), shape.rank()));
}

absl::Status Tensor::CheckFlat(DType dtype) const {
  if (dtype != dtype_) {
    return InvalidArgument("Tensor::Flat: dtype: got ", DTypeName(dtype),
                           ", want ", DTypeName(dtype_),
                           " as the tensor's; use Cast for another dtype");
  }
  if (!is_host()) {
    return FailedPrecondition("Tensor::Flat: the CPU cannot read a tensor on ",
                              device().ToString(),
                              "; use To(Device::Cpu()) first");
  }
  if (!is_contiguous()) {
    return FailedPrecondition("Tensor::Flat: ", DTypeName(dtype_),
                              shape_.ToString(), " with strides [",
                              absl::StrJoin(strides_bytes(), ", "),
                              "] is not contiguous; use Contiguous() first");
  }
  return absl::OkStatus();
}

absl::Status Tensor::ItemError() const {
  return InvalidArgument("Tensor::Item: number of elements of shape ",
                         shape_.ToString(), ": got ", num_elements(),
                         ", want 1");
}

}  // namespace rill
