// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/dlpack/dlpack_view.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor_layout.h"

namespace rill {
namespace {

using tensor_internal::ReachOf;
using tensor_internal::RowMajorStrides;
using tensor_internal::Strides;

// --- Dtypes ------------------------------------------------------------------

struct DTypeRow {
  DType dtype;
  DLDataTypeCode code;
  uint8_t bits;
};

// One table for both directions, so that they cannot differ.
constexpr DTypeRow kDTypes[] = {
    {DType::kBool, kDLBool, 8},
    {DType::kUInt8, kDLUInt, 8},
    {DType::kInt8, kDLInt, 8},
    {DType::kInt16, kDLInt, 16},
    {DType::kInt32, kDLInt, 32},
    {DType::kInt64, kDLInt, 64},
    {DType::kFloat16, kDLFloat, 16},
    {DType::kBFloat16, kDLBfloat, 16},
    {DType::kFloat32, kDLFloat, 32},
    {DType::kFloat64, kDLFloat, 64},
    {DType::kUInt16, kDLUInt, 16},
    {DType::kUInt32, kDLUInt, 32},
    {DType::kUInt64, kDLUInt, 64},
    {DType::kComplex64, kDLComplex, 64},
    {DType::kComplex128, kDLComplex, 128},
};
static_assert(std::size(kDTypes) == kNumDTypes);

DLDataType ToDLDataType(DType dtype) {
  DLDataType result = {};
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) result = {row.code, row.bits, /*lanes=*/1};
  }
  return result;
}

// DLPack's name of a type, for errors: "float128", "float8_e4m3fn".
std::string DLDataTypeName(const DLDataType& dtype) {
  constexpr absl::string_view kNames[] = {"int",
                                          "uint",
                                          "float",
                                          "opaque handle",
                                          "bfloat",
                                          "complex",
                                          "bool",
                                          "float8_e3m4",
                                          "float8_e4m3",
                                          "float8_e4m3b11fnuz",
                                          "float8_e4m3fn",
                                          "float8_e4m3fnuz",
                                          "float8_e5m2",
                                          "float8_e5m2fnuz",
                                          "float8_e8m0fnu",
                                          "float6_e2m3fn",
                                          "float6_e3m2fn",
                                          "float4_e2m1fn"};
  if (dtype.code >= std::size(kNames)) {
    return absl::StrCat("type code ", dtype.code, " of ", dtype.bits, " bits");
  }
  const absl::string_view name = kNames[dtype.code];
  // The names of these have the bits already.
  if (dtype.code >= kDLFloat8_e3m4) return std::string(name);
  return absl::StrCat(name, dtype.bits);
}

absl::StatusOr<DType> FromDLDataType(const DLDataType& dtype) {
  if (dtype.lanes != 1) {
    return InvalidArgument("FromDLPack: lanes of ", DLDataTypeName(dtype),
                           ": got ", dtype.lanes,
                           ", want 1; make them a dimension");
  }
  for (const DTypeRow& row : kDTypes) {
    if (row.code == dtype.code && row.bits == dtype.bits) return row.dtype;
  }
  return InvalidArgument(
      "FromDLPack: dtype: got ", DLDataTypeName(dtype), ", want one of ",
      absl::StrJoin(kDTypes, ", ", [](std::string* out, const DTypeRow& row) {
        absl::StrAppend(out, DTypeName(row.dtype));
      }));
}

// --- Devices -----------------------------------------------------------------

absl::StatusOr<DLDevice> ToDLDevice(absl::string_view caller,
                                    const Tensor& tensor) {
  if (tensor.is_pinned()) return DLDevice{kDLCUDAHost, 0};
  const Device device = tensor.device();
  switch (device.type) {
    case Device::Type::kCpu:
      return DLDevice{kDLCPU, 0};
    case Device::Type::kCuda:
      return DLDevice{kDLCUDA, device.index};
    case Device::Type::kFake:
      if (GetBackend(device).ok()) return DLDevice{kDLExtDev, device.index};
      break;
  }
  return InvalidArgument(caller, ": device: got ", device.ToString(),
                         ", want cpu or cuda:N; no other library knows it: use "
                         "To(Device::Cpu())");
}

struct Place {
  Device device;
  MemoryKind kind;
};

absl::StatusOr<Place> FromDLDevice(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
      return Place{Device::Cpu(), MemoryKind::kPageable};
    case kDLCUDAHost:
      return Place{Device::Cpu(), MemoryKind::kPinned};
    case kDLCUDA:
      if (device.device_id >= 0) {
        return Place{Device::Cuda(device.device_id), MemoryKind::kDevice};
      }
      break;
    case kDLExtDev:
      if (GetBackend(Device::Fake(device.device_id)).ok()) {
        return Place{Device::Fake(device.device_id), MemoryKind::kDevice};
      }
      break;
    default:
      break;
  }
  return InvalidArgument(
      "FromDLPack: device: got type ", static_cast<int>(device.device_type),
      " index ", device.device_id,
      ", want 1 (CPU), 2 (CUDA, index >= 0) or 3 (CUDA host)");
}

// --- Export ------------------------------------------------------------------

// The data that a managed tensor of type Managed points to, in one piece with
// it: one allocation, which the deleter frees. The tensor in it keeps the bytes
// alive. Managed is either version of the struct.
template <typename Managed>
struct Exported {
  Managed managed = {};
  Tensor tensor;
  std::array<int64_t, Shape::kMaxRank> shape = {};
  Strides strides = {};
};

template <typename Managed>
absl::StatusOr<std::unique_ptr<Exported<Managed>>> Export(
    absl::string_view caller, const Tensor& tensor) {
  if (!tensor.is_valid()) {
    return InvalidArgument(
        caller, ": tensor: got one without a buffer, want a valid one");
  }
  RILL_ASSIGN_OR_RETURN(const DLDevice device, ToDLDevice(caller, tensor));
  const Shape& shape = tensor.shape();
  const int64_t item_bytes = DTypeSize(tensor.dtype());
  auto exported = std::make_unique<Exported<Managed>>();
  // In elements; right as it is where the tensor's own strides say nothing.
  exported->strides = RowMajorStrides(shape, /*item_bytes=*/1);
  for (int d = 0; d < shape.rank(); ++d) {
    exported->shape[d] = shape[d];
    // No step is ever taken along such a dimension. Consumers that check for
    // row-major strides then find them.
    if (tensor.num_elements() == 0 || shape[d] == 1) continue;
    const int64_t stride = tensor.strides_bytes()[d];
    if (stride % item_bytes != 0) {
      return InvalidArgument(
          caller, ": byte strides of ", DTypeName(tensor.dtype()),
          shape.ToString(), ": got [",
          absl::StrJoin(tensor.strides_bytes(), ", "), "], want multiples of ",
          item_bytes, "; use Contiguous() first");
    }
    exported->strides[d] = stride / item_bytes;
  }
  exported->tensor = tensor;
  exported->managed.dl_tensor = {
      .data = tensor.num_elements() == 0 ? nullptr : tensor.raw_data(),
      .device = device,
      .ndim = shape.rank(),
      .dtype = ToDLDataType(tensor.dtype()),
      .shape = exported->shape.data(),
      .strides = exported->strides.data(),
      .byte_offset = 0};
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  return exported;
}

// --- Import ------------------------------------------------------------------

// Calls the deleter once, when the last tensor goes or on the first error.
template <typename Managed>
std::shared_ptr<const void> Own(Managed* managed) {
  return std::shared_ptr<const void>(managed, [](Managed* self) {
    if (self->deleter != nullptr) self->deleter(self);
  });
}

absl::Status NullError() {
  return InvalidArgument("FromDLPack: managed tensor: got null, want one");
}

// The rank and the pointer come from outside and are checked before a size is
// read.
absl::StatusOr<Shape> ShapeOf(const DLTensor& from) {
  if (from.ndim < 0 || from.ndim > Shape::kMaxRank) {
    return InvalidArgument("FromDLPack: ndim: got ", from.ndim, ", want [0, ",
                           Shape::kMaxRank, "]");
  }
  if (from.ndim > 0 && from.shape == nullptr) {
    return InvalidArgument("FromDLPack: shape: got null, want ", from.ndim,
                           " sizes");
  }
  return Shape::Create(absl::MakeConstSpan(from.shape, from.ndim));
}

absl::Status ReachError(const DLTensor& from, DType dtype, const Shape& shape) {
  return InvalidArgument(
      "FromDLPack: elements of ", DTypeName(dtype), shape.ToString(),
      " with strides [",
      from.strides == nullptr
          ? "row-major"
          : absl::StrJoin(absl::MakeConstSpan(from.strides, shape.rank()),
                          ", "),
      "] from address ", reinterpret_cast<uintptr_t>(from.data), " + ",
      from.byte_offset, ": got bytes past the address space, want them in it");
}

// The bytes that `from` spans, [*begin, *begin + *bytes), its first element at
// *begin + *offset; false where they do not fit. `shape` has elements.
bool FindBytes(const DLTensor& from, const Shape& shape, int64_t item_bytes,
               absl::Span<const int64_t> strides, uintptr_t* begin,
               int64_t* bytes, int64_t* offset) {
  uintptr_t first;
  int64_t low;
  int64_t high;
  uintptr_t end;
  // Negative strides reach below the first element, so low may be below 0. All
  // sums are checked: what wraps around would look like a small buffer.
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(from.data),
                             from.byte_offset, &first) ||
      !ReachOf(shape, strides, item_bytes, &low, &high) ||
      __builtin_add_overflow(first, low, begin) ||
      __builtin_add_overflow(first, high, &end) ||
      __builtin_sub_overflow(high, low, bytes)) {
    return false;
  }
  *offset = -low;
  return true;
}

absl::StatusOr<Tensor> Import(const DLTensor& from, bool is_writable,
                              std::shared_ptr<const void> owner) {
  RILL_ASSIGN_OR_RETURN(const Place place, FromDLDevice(from.device));
  RILL_ASSIGN_OR_RETURN(const DType dtype, FromDLDataType(from.dtype));
  RILL_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(from));
  const int64_t item_bytes = DTypeSize(dtype);
  if (shape.num_elements() == 0) {
    return Tensor::View(Buffer::Wrap(nullptr, 0, place.device, place.kind,
                                     std::move(owner), is_writable),
                        dtype, shape, 0);
  }
  if (from.data == nullptr) {
    return InvalidArgument("FromDLPack: data of ", DTypeName(dtype),
                           shape.ToString(), ": got null, want an address");
  }
  Strides strides = RowMajorStrides(shape, item_bytes);
  for (int d = 0; from.strides != nullptr && d < shape.rank(); ++d) {
    // The stride of a dimension of size 1 says nothing.
    if (shape[d] > 1 &&
        __builtin_mul_overflow(from.strides[d], item_bytes, &strides[d])) {
      return ReachError(from, dtype, shape);
    }
  }
  const auto byte_strides = absl::MakeConstSpan(strides.data(), shape.rank());
  uintptr_t begin;
  int64_t bytes;
  int64_t offset;
  if (!FindBytes(from, shape, item_bytes, byte_strides, &begin, &bytes,
                 &offset)) {
    return ReachError(from, dtype, shape);
  }
  // A complex number needs the alignment of its parts only, as in C++ and
  // NumPy.
  const bool is_complex = from.dtype.code == kDLComplex;
  const int64_t alignment = is_complex ? item_bytes / 2 : item_bytes;
  if ((begin + offset) % alignment != 0) {
    return InvalidArgument(
        "FromDLPack: address of ", DTypeName(dtype), shape.ToString(),
        ": got one that is ", (begin + offset) % alignment,
        " past a multiple of ", alignment,
        " bytes, want a multiple; copy the array where it comes from");
  }
  return Tensor::View(
      Buffer::Wrap(reinterpret_cast<void*>(begin), bytes, place.device,
                   place.kind, std::move(owner), is_writable),
      dtype, shape, offset, byte_strides);
}

}  // namespace

absl::StatusOr<DLManagedTensor*> ToDLPack(const Tensor& tensor) {
  if (tensor.is_valid() && !tensor.is_writable()) {
    return InvalidArgument(
        "ToDLPack: ", DTypeName(tensor.dtype()), tensor.shape().ToString(),
        ": got a read-only tensor, want one that may be written; use "
        "ToDLPackVersioned, or Clone");
  }
  RILL_ASSIGN_OR_RETURN(auto exported,
                        Export<DLManagedTensor>("ToDLPack", tensor));
  return &exported.release()->managed;
}

absl::StatusOr<DLManagedTensorVersioned*> ToDLPackVersioned(
    const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(auto exported, Export<DLManagedTensorVersioned>(
                                           "ToDLPackVersioned", tensor));
  exported->managed.version = {kDLPackMajorVersion, kDLPackMinorVersion};
  exported->managed.flags = tensor.is_writable() ? 0 : kDLPackFlagReadOnly;
  return &exported.release()->managed;
}

absl::StatusOr<Tensor> FromDLPack(DLManagedTensor* managed) {
  if (managed == nullptr) return NullError();
  return Import(managed->dl_tensor, /*is_writable=*/true, Own(managed));
}

absl::StatusOr<Tensor> FromDLPack(DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return NullError();
  // Before the check, so that a version that is refused is deleted too.
  std::shared_ptr<const void> owner = Own(managed);
  // All that other majors share with this one is where the deleter is.
  if (managed->version.major != kDLPackMajorVersion) {
    return InvalidArgument("FromDLPack: version: got ", managed->version.major,
                           ".", managed->version.minor, ", want ",
                           kDLPackMajorVersion,
                           ".x; ask the producer for max_version (",
                           kDLPackMajorVersion, ", ", kDLPackMinorVersion, ")");
  }
  return Import(managed->dl_tensor, (managed->flags & kDLPackFlagReadOnly) == 0,
                std::move(owner));
}

}  // namespace rill
