// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_CUDA_STATUS_H_
#define RILL_DEVICE_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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
// Thread-safety: thread-safe.
absl::Status CudaStatus(cudaError_t error, absl::string_view what);

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_CUDA_STATUS_H_
