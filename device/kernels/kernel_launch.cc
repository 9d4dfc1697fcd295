// SPDX-License-Identifier: Apache-2.0
#include "rill/device/kernels/kernel_launch.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <limits>

#include "absl/base/attributes.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr int kMostThreads = 1024;
constexpr size_t kTypes = 3;

// By type of device; none for the CPU. Never destroyed: work may outlive main.
ABSL_CONST_INIT std::array<std::atomic<KernelLauncher*>, kTypes> launchers{};

absl::Status CheckGrid(const KernelCall& call) {
  const KernelGrid& grid = call.grid;
  if (grid.blocks < 1 || grid.blocks > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("LaunchKernel: \"", call.name, "\": blocks: got ",
                           grid.blocks, ", want [1, 2^31)");
  }
  if (grid.threads < 1 || grid.threads > kMostThreads) {
    return InvalidArgument("LaunchKernel: \"", call.name, "\": threads: got ",
                           grid.threads, ", want [1, ", kMostThreads, "]");
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterKernelLauncher(Device::Type type,
                            std::unique_ptr<KernelLauncher> launcher) {
  delete launchers[static_cast<size_t>(type)].exchange(
      launcher.release(), std::memory_order_acq_rel);
}

namespace device_internal {

absl::Status LaunchCall(const KernelCall& call, const Stream& stream) {
  RILL_RETURN_IF_ERROR(CheckGrid(call));
  const Device device = stream.device();
  if (device.is_cpu()) {
    call.run_on_host(call.kernel, call.grid, /*order=*/0);
    return absl::OkStatus();
  }
  KernelLauncher* const launcher =
      launchers[static_cast<size_t>(device.type)].load(
          std::memory_order_acquire);
  if (launcher == nullptr) {
    return FailedPrecondition("LaunchKernel: \"", call.name, "\": nothing ",
                              "launches kernels on ", device.ToString());
  }
  return launcher->Launch(device.index, call, stream.handle());
}

}  // namespace device_internal
}  // namespace rill
