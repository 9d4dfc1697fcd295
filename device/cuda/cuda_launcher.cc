// SPDX-License-Identifier: Apache-2.0
// Kernels on CUDA devices: what RILL_CUDA_KERNEL made and a program linked.
#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/device/cuda/cuda_start.h"
#include "rill/device/cuda/cuda_status.h"
#include "rill/device/cuda/kernel_registry.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill {
namespace {

class CudaLauncher final : public KernelLauncher {
 public:
  absl::Status Launch(int index, const KernelCall& call,
                      StreamHandle stream) override {
    const cuda_internal::CudaLaunch launch =
        cuda_internal::FindCudaKernel(call.name);
    if (launch == nullptr) {
      return FailedPrecondition(
          "LaunchKernel: \"", call.name,
          "\": has no code for CUDA in this program; link @rill//cuda");
    }
    cuda_internal::ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR(
        call.name,
        static_cast<cudaError_t>(launch(call.kernel, call.grid.blocks,
                                        call.grid.threads, stream.value)));
    return absl::OkStatus();
  }
};

// Calls nothing of the runtime, as cuda_backend.cc has it.
[[maybe_unused]] const bool registered = [] {
  RegisterKernelLauncher(Device::Type::kCuda, std::make_unique<CudaLauncher>());
  return true;
}();

}  // namespace
}  // namespace rill
