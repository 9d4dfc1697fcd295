// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_TENSOR_H_
#define RILL_TENSORS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/per_dim.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace tensor_internal {
class LeafAllocator;
}  // namespace tensor_internal

// An n-dimensional array: dtype, shape, byte strides and offset over a shared
// Buffer. Copying a Tensor shares the bytes; Clone copies them. Views (Index,
// Slice, Reshape of a contiguous tensor, ...) share bytes too.
//
// Thread-safety: thread-compatible as a value; the bytes are the users' to
//   synchronise.
// Device/Stream: making views and reading the metadata never touches a device.
//   data<T>() may be read by the CPU unless memory_kind() is kDevice. Copies
//   without a stream go on the device's current one (device/current_stream.h),
//   and have happened on return.
// Cost: copies and views are O(rank) without allocation.
//
// Example (TensorTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(Tensor t, Tensor::Zeros(DType::kFloat32, {2, 3}));
//   t.data<float>()[4] = 1.5f;
//   RILL_ASSIGN_OR_RETURN(Tensor row, t.Index(1));     // shape [3], same bytes
class Tensor {
 public:
  struct Options {
    Device device = Device::Cpu();
    MemoryKind memory_kind = MemoryKind::kPageable;  // Device memory: kDevice.
  };

  // An empty tensor of shape [0] without bytes; is_valid() is false.
  Tensor() = default;

  // Contiguous, row-major, 64-byte aligned. RESOURCE_EXHAUSTED where memory
  // does not suffice; INVALID_ARGUMENT where the bytes do not fit in int64.
  static absl::StatusOr<Tensor> Empty(DType dtype, const Shape& shape,
                                      const Options& options);
  static absl::StatusOr<Tensor> Empty(DType dtype, const Shape& shape);
  static absl::StatusOr<Tensor> Zeros(DType dtype, const Shape& shape);
  // Copies `values`, row-major. INVALID_ARGUMENT if their number is not the
  // shape's.
  template <typename T>
  static absl::StatusOr<Tensor> From(absl::Span<const T> values,
                                     const Shape& shape) {
    return FromBytes(DTypeOf<T>, shape, values.data(),
                     static_cast<int64_t>(values.size()));
  }
  // The same of a list, From({true, false}, {2, 1}), and of a vector, one of
  // bool too, whose elements lie nowhere as bytes.
  template <typename T>
  static absl::StatusOr<Tensor> From(std::initializer_list<T> values,
                                     const Shape& shape) {
    return From(absl::Span<const T>(values.begin(), values.size()), shape);
  }
  template <typename T>
  static absl::StatusOr<Tensor> From(const std::vector<T>& values,
                                     const Shape& shape) {
    if constexpr (std::is_same_v<T, bool>) {
      return FromFlags(values, shape);
    } else {
      return From(absl::Span<const T>(values), shape);
    }
  }
  // A view of bytes [offset_bytes, ...) of `buffer`. INVALID_ARGUMENT if an
  // element would lie outside the buffer or not be aligned for its type.
  // Strides in bytes, one a dimension, >= 0 or negative as long as all elements
  // are inside.
  static absl::StatusOr<Tensor> View(std::shared_ptr<Buffer> buffer,
                                     DType dtype, const Shape& shape,
                                     int64_t offset_bytes,
                                     absl::Span<const int64_t> strides_bytes);
  // The same with row-major strides.
  static absl::StatusOr<Tensor> View(std::shared_ptr<Buffer> buffer,
                                     DType dtype, const Shape& shape,
                                     int64_t offset_bytes);

  bool is_valid() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t num_elements() const { return shape_.num_elements(); }
  // Bytes of the elements, not of the buffer.
  int64_t size_bytes() const { return num_elements() * DTypeSize(dtype_); }
  absl::Span<const int64_t> strides_bytes() const {
    return absl::MakeConstSpan(strides_.data(), shape_.rank());
  }
  Device device() const { return buffer_ ? buffer_->device() : Device::Cpu(); }
  MemoryKind memory_kind() const {
    return buffer_ ? buffer_->memory_kind() : MemoryKind::kPageable;
  }
  bool is_pinned() const { return memory_kind() == MemoryKind::kPinned; }
  bool is_host() const { return memory_kind() != MemoryKind::kDevice; }
  bool is_writable() const { return buffer_ && buffer_->is_writable(); }
  // Row-major without gaps.
  bool is_contiguous() const {
    int64_t run = DTypeSize(dtype_);
    for (int d = rank() - 1; d >= 0; --d) {
      if (shape_[d] != 1 && strides_[d] != run) return num_elements() == 0;
      run *= shape_[d];
    }
    return true;
  }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // The first element's address. Sharing bytes is the point of a Tensor, so
  // this is const like a pointer's target. T is not checked against dtype();
  // Flat<T>() checks.
  std::byte* raw_data() const { return data_; }
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(data_);
  }
  // All elements in order. INVALID_ARGUMENT if T is not the dtype;
  // FAILED_PRECONDITION if not contiguous or not readable by the CPU.
  template <typename T>
  absl::StatusOr<absl::Span<T>> Flat() const {
    if (absl::Status status = CheckFlat(DTypeOf<T>); !status.ok()) {
      return status;
    }
    return absl::MakeSpan(data<T>(), num_elements());
  }
  // The only element. Errors as Flat; INVALID_ARGUMENT if there is not one.
  template <typename T>
  absl::StatusOr<T> Item() const {
    auto flat = Flat<T>();
    if (!flat.ok()) return flat.status();
    if (flat->size() != 1) return ItemError();
    return (*flat)[0];
  }

  // Views. Errors are INVALID_ARGUMENT (dimension) or OUT_OF_RANGE (index),
  // and name the shape.
  absl::StatusOr<Tensor> Index(int64_t index) const;  // Drops dimension 0.
  absl::StatusOr<Tensor> Select(int dim, int64_t index) const;
  // [begin, end) of a dimension, every `step`-th; 0 <= begin <= end <= size.
  absl::StatusOr<Tensor> Slice(int dim, int64_t begin, int64_t end,
                               int64_t step = 1) const;
  absl::StatusOr<Tensor> Squeeze(int dim) const;    // A dimension of size 1.
  absl::StatusOr<Tensor> Unsqueeze(int dim) const;  // dim in [0, rank].
  absl::StatusOr<Tensor> Permute(absl::Span<const int> dims) const;
  // Sizes of 1 (or new leading dimensions) repeat with stride 0.
  absl::StatusOr<Tensor> Expand(const Shape& shape) const;
  // Same elements in order under another shape; shares bytes where the layout
  // allows it (else FAILED_PRECONDITION: use Reshape).
  absl::StatusOr<Tensor> ViewAs(const Shape& shape) const;
  // The same, copying where it must.
  absl::StatusOr<Tensor> Reshape(const Shape& shape) const;

  // A contiguous copy on the same device; a copy of pinned or mapped memory is
  // pageable.
  absl::StatusOr<Tensor> Clone() const;
  // *this where it is contiguous, else a Clone.
  absl::StatusOr<Tensor> Contiguous() const;
  // Where it lies already: *this. Else a contiguous copy, complete on return.
  absl::StatusOr<Tensor> To(Device device) const;
  // A copy in page-locked memory for `device`; *this if pinned already.
  // INVALID_ARGUMENT for device memory.
  absl::StatusOr<Tensor> Pin(Device device) const;

  // Copies the elements of `from` into the bytes of this, as if they had been
  // read before the first is written. Shapes and dtypes must be equal
  // (INVALID_ARGUMENT names both sides), and so for two tensors on different
  // devices must the order be: both contiguous. FAILED_PRECONDITION where this
  // is read-only or repeats elements (Expand). Complete on return.
  absl::Status CopyFrom(const Tensor& from) const;
  // The error that CopyFrom would return, without copying.
  absl::Status CheckCopyFrom(const Tensor& from) const;
  // Enqueued on `stream`, which is of the side that is not on the CPU; both
  // sides contiguous. Between two devices it is a stream of one that reaches
  // the other (ReachesPeer). The caller keeps both alive and unchanged until
  // the stream got there.
  absl::Status CopyFromAsync(const Tensor& from, const Stream& stream) const;

  // Same dtype, shape and elements, bit for bit (NaN equals itself). Device
  // tensors are copied to the host first.
  absl::StatusOr<bool> BitEquals(const Tensor& other) const;

  // "float32[2, 3] cpu {1, 2, 3, 4, 5, 6}", long values shortened.
  std::string DebugString() const;
  friend std::ostream& operator<<(std::ostream& os, const Tensor& tensor);

 private:
  friend class tensor_internal::LeafAllocator;

  Tensor(std::shared_ptr<Buffer> buffer, std::byte* data, DType dtype,
         const Shape& shape);  // Row-major.
  static absl::StatusOr<Tensor> FromBytes(DType dtype, const Shape& shape,
                                          const void* values, int64_t count);
  static absl::StatusOr<Tensor> FromFlags(const std::vector<bool>& flags,
                                          const Shape& shape);
  absl::Status CheckDim(absl::string_view caller, int dim) const;
  absl::Status CopyWithinDevice(const Tensor& from) const;
  absl::Status CheckFlat(DType dtype) const;
  absl::Status ItemError() const;

  std::shared_ptr<Buffer> buffer_;
  std::byte* data_ = nullptr;
  Shape shape_ = {0};
  tensor_internal::PerDim strides_;
  DType dtype_ = DType::kFloat32;
};

// A new tensor with these, at least one of one dtype, shape and device, along a
// new dimension `dim`. INVALID_ARGUMENT past the limits of Shape.
absl::StatusOr<Tensor> StackLeaves(absl::Span<const Tensor> leaves, int dim);

// Element-wise cast between dtypes with arithmetic, bool included; like a C++
// static_cast; the same dtype gives the tensor itself. Nothing saturates:
// integers wrap, a float outside int64 or NaN becomes the lowest int64 first.
// INVALID_ARGUMENT for other dtypes and device memory. To and from float32 by
// vectors, but for int64 to it and integers from it.
absl::StatusOr<Tensor> Cast(const Tensor& tensor, DType dtype);

}  // namespace rill

#endif  // RILL_TENSORS_TENSOR_H_
