// SPDX-License-Identifier: Apache-2.0
// dlpack_view.h as C functions, for dlpack_python_test.py to call through
// ctypes: so NumPy and torch are tried without Python's headers. Tensors are
// Tensor*; a null result means that RillLastError() says why.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Not atomic: the test has one thread.
int64_t live_buffers = 0;

std::string& LastError() {
  static auto* const error = new std::string;
  return *error;
}

template <typename T>
bool Keep(absl::StatusOr<T> result, T* value) {
  if (!result.ok()) {
    LastError() = result.status().ToString();
    return false;
  }
  *value = *std::move(result);
  return true;
}

void* NewTensor(absl::StatusOr<Tensor> result) {
  auto tensor = std::make_unique<Tensor>();
  return Keep(std::move(result), tensor.get()) ? tensor.release() : nullptr;
}

const Tensor& AsTensor(const void* tensor) {
  return *static_cast<const Tensor*>(tensor);
}

// A copy of `bytes` that counts itself in live_buffers.
std::shared_ptr<Buffer> CountedBuffer(absl::Span<const std::byte> bytes,
                                      bool is_writable) {
  ++live_buffers;
  auto data = std::shared_ptr<std::byte[]>(new std::byte[bytes.size() + 1],
                                           [](std::byte* p) {
                                             --live_buffers;
                                             delete[] p;
                                           });
  std::memcpy(data.get(), bytes.data(), bytes.size());
  return Buffer::Wrap(data.get(), static_cast<int64_t>(bytes.size()),
                      Device::Cpu(), MemoryKind::kPageable, data, is_writable);
}

absl::StatusOr<Tensor> MakeTensor(const char* dtype_name,
                                  absl::Span<const int64_t> sizes,
                                  const int64_t* strides, int64_t offset,
                                  absl::Span<const std::byte> bytes,
                                  bool is_writable) {
  RILL_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(dtype_name));
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  return Tensor::View(CountedBuffer(bytes, is_writable), dtype, shape, offset,
                      absl::MakeConstSpan(strides, sizes.size()));
}

}  // namespace
}  // namespace rill

extern "C" {

const char* RillLastError() { return rill::LastError().c_str(); }

// Buffers of RillMakeTensor that are not freed yet.
int64_t RillLiveBuffers() { return rill::live_buffers; }

// A view of a copy of the bytes; strides and offset in bytes.
void* RillMakeTensor(const char* dtype, int rank, const int64_t* sizes,
                     const int64_t* strides, int64_t offset, const void* bytes,
                     int64_t num_bytes, int is_writable) {
  return rill::NewTensor(rill::MakeTensor(
      dtype, absl::MakeConstSpan(sizes, rank), strides, offset,
      absl::MakeConstSpan(static_cast<const std::byte*>(bytes), num_bytes),
      is_writable != 0));
}

void RillDeleteTensor(void* tensor) {
  delete static_cast<rill::Tensor*>(tensor);
}

const char* RillDType(const void* tensor) {
  return rill::DTypeName(rill::AsTensor(tensor).dtype()).data();
}
int RillRank(const void* tensor) { return rill::AsTensor(tensor).rank(); }
int64_t RillSize(const void* tensor, int dim) {
  return rill::AsTensor(tensor).shape()[dim];
}
int64_t RillByteStride(const void* tensor, int dim) {
  return rill::AsTensor(tensor).strides_bytes()[dim];
}
void* RillData(const void* tensor) { return rill::AsTensor(tensor).raw_data(); }
int RillIsWritable(const void* tensor) {
  return rill::AsTensor(tensor).is_writable() ? 1 : 0;
}

// The elements in row-major order to `out`, which has room; how many bytes.
int64_t RillCopyElements(const void* tensor, void* out) {
  rill::Tensor copy;
  if (!rill::Keep(rill::AsTensor(tensor).Contiguous(), &copy)) return 0;
  if (copy.size_bytes() > 0) {
    std::memcpy(out, copy.raw_data(), copy.size_bytes());
  }
  return copy.size_bytes();
}

void* RillToDLPack(const void* tensor) {
  rill::DLManagedTensor* managed = nullptr;
  rill::Keep(rill::ToDLPack(rill::AsTensor(tensor)), &managed);
  return managed;
}
void* RillToDLPackVersioned(const void* tensor) {
  rill::DLManagedTensorVersioned* managed = nullptr;
  rill::Keep(rill::ToDLPackVersioned(rill::AsTensor(tensor)), &managed);
  return managed;
}

// The functions of the Python that loads this.
int PyCapsule_IsValid(void* capsule, const char* name);
void* PyCapsule_GetPointer(void* capsule, const char* name);

// The destructor of capsules: frees what nobody took. Not written in Python, as
// it also runs while an exception is on its way.
void RillFreeUnused(void* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    auto* const self = static_cast<rill::DLManagedTensor*>(
        PyCapsule_GetPointer(capsule, "dltensor"));
    self->deleter(self);
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* const self = static_cast<rill::DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    self->deleter(self);
  }
}

void* RillFromDLPack(void* managed) {
  return rill::NewTensor(
      rill::FromDLPack(static_cast<rill::DLManagedTensor*>(managed)));
}
void* RillFromDLPackVersioned(void* managed) {
  return rill::NewTensor(
      rill::FromDLPack(static_cast<rill::DLManagedTensorVersioned*>(managed)));
}

}  // extern "C"
