// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_DLPACK_DLPACK_H_
#define RILL_TENSORS_DLPACK_DLPACK_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

// The C structures by which libraries hand arrays to each other in one process:
// DLPack, v0.8 (DLManagedTensor) and v1.x (DLManagedTensorVersioned).
//
// Source: https://github.com/dmlc/dlpack, include/dlpack/dlpack.h. This is a
//   statement of our own of that ABI, in our namespace, so that a program may
//   also include upstream's header, or NumPy's or torch's copy of it. A pointer
//   to one is a pointer to the other by reinterpret_cast; the assertions at the
//   end hold the layout fast.
namespace rill {

inline constexpr uint32_t kDLPackMajorVersion = 1;
inline constexpr uint32_t kDLPackMinorVersion = 1;

enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,  // Pinned by CUDA.
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
};

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e3m4 = 7,
  kDLFloat8_e4m3 = 8,
  kDLFloat8_e4m3b11fnuz = 9,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat6_e2m3fn = 15,
  kDLFloat6_e3m2fn = 16,
  kDLFloat4_e2m1fn = 17,
};

struct DLDataType {
  uint8_t code;    // DLDataTypeCode.
  uint8_t bits;    // Of one lane.
  uint16_t lanes;  // 1 but for vector types.
};

struct DLTensor {
  void* data;  // Null where there is no element.
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;      // In elements; null for row-major.
  uint64_t byte_offset;  // From `data` to the first element.
};

// Capsule "dltensor". Whoever takes it calls deleter(self) once, when done;
// a null deleter has nothing to free.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  uint32_t major;  // Another major has another layout behind `deleter`.
  uint32_t minor;
};

// Bits of `flags`. Those that are not named here may be ignored.
inline constexpr uint64_t kDLPackFlagReadOnly = 1;
inline constexpr uint64_t kDLPackFlagIsCopied = 2;

// Capsule "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(void*) == 8, "The offsets below are those of 64 bits.");
static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
static_assert(std::is_standard_layout_v<DLTensor> &&
              std::is_trivial_v<DLTensor>);
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 &&
              offsetof(DLTensor, ndim) == 16 &&
              offsetof(DLTensor, dtype) == 20 &&
              offsetof(DLTensor, shape) == 24 &&
              offsetof(DLTensor, strides) == 32 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(std::is_standard_layout_v<DLManagedTensor> &&
              sizeof(DLManagedTensor) == 64 &&
              offsetof(DLManagedTensor, manager_ctx) == 48 &&
              offsetof(DLManagedTensor, deleter) == 56);
static_assert(std::is_standard_layout_v<DLManagedTensorVersioned> &&
              sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
              offsetof(DLManagedTensorVersioned, deleter) == 16 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

}  // namespace rill

#endif  // RILL_TENSORS_DLPACK_DLPACK_H_
