// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_CUDA_STATUS_H_
#define RILL_DEVICE_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/device/cuda/lost_devices.h"

// Returns early with the status of a cudaError_t that `what` gave.
#define RILL_CUDA_RETURN_IF_ERROR(what, expr)     \
  if (const cudaError_t rill_cuda_error = (expr); \
      rill_cuda_error == cudaSuccess) {           \
  } else /* NOLINT */                             \
    return ::rill::cuda_internal::CudaStatus(rill_cuda_error, (what))

namespace rill::cuda_internal {

// "CudaBackend::<what>: cudaErrorName (text); <what to do>", and clears the
// runtime's last error. No device or driver is FAILED_PRECONDITION, memory
// RESOURCE_EXHAUSTED, bad arguments INVALID_ARGUMENT, anything else INTERNAL.
// After an error that no call can follow (an illegal address, memory that ECC
// cannot correct) the device that the thread works on is lost.
// Thread-safety: thread-safe.
absl::Status CudaStatus(cudaError_t error, absl::string_view what);

// The devices that this process has lost.
LostDevices& TheLostDevices();
// The device that the calls of this thread are for, from now on.
void WorkOn(int index);

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_CUDA_STATUS_H_
