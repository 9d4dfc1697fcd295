// SPDX-License-Identifier: Apache-2.0
// Tensor's operations that read or write bytes, on one device or between two.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

using tensor_internal::ForEachRun;

// Where elements lie: the lowest byte and one past the highest. `tensor` has
// elements.
std::pair<const std::byte*, const std::byte*> ExtentOf(const Tensor& tensor) {
  const std::byte* low = tensor.raw_data();
  const std::byte* high = low + DTypeSize(tensor.dtype());
  for (int d = 0; d < tensor.rank(); ++d) {
    const int64_t reach = (tensor.shape()[d] - 1) * tensor.strides_bytes()[d];
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

// By their extents: two views that interleave count as overlapping, which only
// costs a copy.
bool Overlap(const Tensor& a, const Tensor& b) {
  if (a.num_elements() == 0 || a.device() != b.device()) return false;
  const auto [a_low, a_high] = ExtentOf(a);
  const auto [b_low, b_high] = ExtentOf(b);
  return a_low < b_high && b_low < a_high;
}

bool SameLayout(const Tensor& a, const Tensor& b) {
  return a.raw_data() == b.raw_data() && a.strides_bytes() == b.strides_bytes();
}

// A copy of all bytes to or from `device`, behind what its current stream has.
absl::Status CopyAndWait(const Tensor& from, Device device, std::byte* to) {
  RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(device));
  RILL_RETURN_IF_ERROR(
      CopyAsync(to, from.raw_data(), from.size_bytes(), stream));
  return stream.Synchronize();
}

// Behind what the current streams of both devices have.
absl::Status CopyFromPeer(const Tensor& from, Device device, std::byte* to) {
  RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(device));
  RILL_ASSIGN_OR_RETURN(const Stream source, CurrentStream(from.device()));
  RILL_ASSIGN_OR_RETURN(const Event ready, Event::Record(source));
  RILL_RETURN_IF_ERROR(stream.WaitFor(ready));
  const absl::Status copied = CopyAndWait(from, device, to);
  RILL_RETURN_IF_ERROR(ready.IsComplete().status());
  return copied;
}

}  // namespace

absl::Status Tensor::CheckCopyFrom(const Tensor& from) const {
  if (dtype_ != from.dtype_ || !(shape_ == from.shape_)) {
    return InvalidArgument("Tensor::CopyFrom: got ", DTypeName(from.dtype_),
                           from.shape_.ToString(), ", want ", DTypeName(dtype_),
                           shape_.ToString(), " as the destination");
  }
  if (num_elements() == 0) return absl::OkStatus();
  if (!is_writable()) {
    return FailedPrecondition(
        "Tensor::CopyFrom: the destination is read-only; Clone it first");
  }
  for (int d = 0; d < rank(); ++d) {
    // Writing to repeated elements would leave the last one that came.
    if (shape_[d] > 1 && strides_[d] == 0) {
      return FailedPrecondition("Tensor::CopyFrom: the destination of shape ",
                                shape_.ToString(),
                                " repeats its elements in dimension ", d,
                                "; Clone it before writing");
    }
  }
  // Copies between devices are of one run of bytes.
  if (device() != from.device() &&
      (!is_contiguous() || !from.is_contiguous())) {
    return InvalidArgument(
        "Tensor::CopyFrom: between ", from.device().ToString(), " and ",
        device().ToString(),
        " both sides must be contiguous; use Contiguous() first");
  }
  return absl::OkStatus();
}

absl::Status Tensor::CopyWithinDevice(const Tensor& from) const {
  const int64_t item = DTypeSize(dtype_);
  // Runs of bytes that are contiguous on both sides, as long as possible.
  if (is_host()) {
    ForEachRun(shape_, strides_bytes(), from.strides_bytes(), item,
               [&](int64_t to_offset, int64_t from_offset, int64_t bytes) {
                 tensor_internal::CopyRun(data_ + to_offset,
                                          from.data_ + from_offset, bytes);
               });
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(device()));
  absl::Status status;
  ForEachRun(shape_, strides_bytes(), from.strides_bytes(), item,
             [&](int64_t to_offset, int64_t from_offset, int64_t bytes) {
               if (!status.ok()) return;
               status = CopyAsync(data_ + to_offset, from.data_ + from_offset,
                                  bytes, stream);
             });
  // Waited for also after an error: copies that were enqueued still use the
  // bytes.
  absl::Status done = stream.Synchronize();
  return status.ok() ? done : status;
}

absl::Status Tensor::CopyFrom(const Tensor& from) const {
  RILL_RETURN_IF_ERROR(CheckCopyFrom(from));
  // The same bytes in the same order: nothing to do.
  if (num_elements() == 0 || SameLayout(*this, from)) return absl::OkStatus();
  if (device() == from.device()) {
    if (!Overlap(*this, from)) return CopyWithinDevice(from);
    // By way of a copy, since runs are copied in no order that suits both
    // sides.
    RILL_ASSIGN_OR_RETURN(const Tensor copy, from.Clone());
    return CopyWithinDevice(copy);
  }
  if (!device().is_cpu() && !from.device().is_cpu()) {
    RILL_ASSIGN_OR_RETURN(const bool reaches,
                          ReachesPeer(device(), from.device()));
    if (reaches) return CopyFromPeer(from, device(), data_);
    RILL_ASSIGN_OR_RETURN(const Tensor staged, from.To(Device::Cpu()));
    return CopyAndWait(staged, device(), data_);
  }
  return CopyAndWait(from, is_host() ? from.device() : device(), data_);
}

absl::Status Tensor::CopyFromAsync(const Tensor& from,
                                   const Stream& stream) const {
  RILL_RETURN_IF_ERROR(CheckCopyFrom(from));
  if (num_elements() == 0) return absl::OkStatus();
  if (!is_contiguous() || !from.is_contiguous()) {
    return InvalidArgument(
        "Tensor::CopyFromAsync: both sides must be contiguous; use "
        "Contiguous() first");
  }
  // The caller's stream has to be of the device that is copied from or to.
  const bool is_of_side =
      device() == stream.device() || from.device() == stream.device();
  for (const Device& side : {device(), from.device()}) {
    if (side.is_cpu() || side == stream.device()) continue;
    if (is_of_side && !stream.device().is_cpu()) {
      RILL_ASSIGN_OR_RETURN(const bool reaches,
                            ReachesPeer(stream.device(), side));
      if (reaches) continue;
    }
    return InvalidArgument("Tensor::CopyFromAsync: got a stream of ",
                           stream.device().ToString(), ", want one of ",
                           side.ToString(), " as the tensor's");
  }
  return CopyAsync(data_, from.data_, size_bytes(), stream);
}

absl::StatusOr<Tensor> Tensor::Clone() const {
  if (!is_valid()) return *this;
  // On the same device; host copies are pageable.
  RILL_ASSIGN_OR_RETURN(Tensor copy,
                        Empty(dtype_, shape_,
                              {device(), is_host() ? MemoryKind::kPageable
                                                   : MemoryKind::kDevice}));
  RILL_RETURN_IF_ERROR(copy.CopyWithinDevice(*this));
  return copy;
}

absl::StatusOr<Tensor> StackLeaves(absl::Span<const Tensor> leaves, int dim) {
  const Shape shape =
      leaves[0].shape().WithDim(dim, static_cast<int64_t>(leaves.size()));
  RILL_RETURN_IF_ERROR(Shape::Create(shape.sizes()).status());
  RILL_ASSIGN_OR_RETURN(
      Tensor all,
      Tensor::Empty(leaves[0].dtype(), shape, {.device = leaves[0].device()}));
  for (size_t i = 0; i < leaves.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(const Tensor part,
                          all.Select(dim, static_cast<int64_t>(i)));
    RILL_RETURN_IF_ERROR(part.CopyFrom(leaves[i]));
  }
  return all;
}

absl::StatusOr<Tensor> Tensor::Contiguous() const {
  if (is_contiguous()) return *this;
  return Clone();
}

absl::StatusOr<Tensor> Tensor::To(Device device) const {
  if (!is_valid() || device == this->device()) return *this;
  // Dense before the move, as devices copy runs of bytes.
  RILL_ASSIGN_OR_RETURN(const Tensor from, Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor copy,
                        Empty(dtype_, shape_, {device, MemoryKind::kPageable}));
  RILL_RETURN_IF_ERROR(copy.CopyFrom(from));
  return copy;
}

absl::StatusOr<Tensor> Tensor::Pin(Device device) const {
  // Memory of a device's backend, so that its copies need not wait.
  if (!is_valid() || is_pinned()) return *this;
  if (!is_host()) {
    return InvalidArgument("Tensor::Pin: the tensor is on ",
                           this->device().ToString(),
                           ", want host memory; use To(Device::Cpu()) first");
  }
  RILL_ASSIGN_OR_RETURN(Tensor copy,
                        Empty(dtype_, shape_, {device, MemoryKind::kPinned}));
  RILL_RETURN_IF_ERROR(copy.CopyWithinDevice(*this));
  return copy;
}

absl::StatusOr<bool> Tensor::BitEquals(const Tensor& other) const {
  if (dtype_ != other.dtype_ || !(shape_ == other.shape_)) return false;
  if (num_elements() == 0) return true;
  RILL_ASSIGN_OR_RETURN(const Tensor a, To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const Tensor b, other.To(Device::Cpu()));
  bool equal = true;
  // By runs of bytes; -0 and 0 differ, and NaN equals itself.
  ForEachRun(shape_, a.strides_bytes(), b.strides_bytes(), DTypeSize(dtype_),
             [&](int64_t a_offset, int64_t b_offset, int64_t bytes) {
               equal =
                   equal && std::memcmp(a.data_ + a_offset, b.data_ + b_offset,
                                        static_cast<size_t>(bytes)) == 0;
             });
  return equal;
}

}  // namespace rill
