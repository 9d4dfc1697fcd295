// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_status.h"

#include "absl/base/no_destructor.h"
#include "absl/strings/str_cat.h"

namespace rill::cuda_internal {
namespace {

struct Meaning {
  absl::StatusCode code;
  absl::string_view what_to_do;
};

// The code, and what a user can do about it; empty where that is unknown.
Meaning MeaningOf(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
      return {absl::StatusCode::kFailedPrecondition,
              "; use cpu, or a machine with a CUDA device that this process "
              "may see (CUDA_VISIBLE_DEVICES)"};
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorStubLibrary:
      return {absl::StatusCode::kFailedPrecondition,
              "; install a driver for CUDA 13 or later, or use cpu"};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return {absl::StatusCode::kFailedPrecondition,
              "; build for this device with --//tools/cuda:archs"};
    case cudaErrorMemoryAllocation:
      return {absl::StatusCode::kResourceExhausted, "; lower the capacity"};
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
      return {absl::StatusCode::kInvalidArgument, ""};
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
      return {absl::StatusCode::kInternal,
              "; a kernel left its memory, and the process has lost the "
              "device; compute-sanitizer finds where"};
    default:
      return {absl::StatusCode::kInternal, ""};
  }
}

// The context of the device takes no more calls.
bool LosesDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorContained:
      return true;
    default:
      return false;
  }
}

thread_local int works_on = -1;

}  // namespace

LostDevices& TheLostDevices() {
  static absl::NoDestructor<LostDevices> devices;
  return *devices;
}

void WorkOn(int index) { works_on = index; }

absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  // Otherwise somebody else's next check would find it.
  cudaGetLastError();
  const Meaning meaning = MeaningOf(error);
  const absl::Status status(
      meaning.code,
      absl::StrCat("CudaBackend::", what, ": ", cudaGetErrorName(error), " (",
                   cudaGetErrorString(error), ")", meaning.what_to_do));
  if (LosesDevice(error) && works_on >= 0) {
    TheLostDevices().Add(works_on, status);
  }
  return status;
}

}  // namespace rill::cuda_internal
