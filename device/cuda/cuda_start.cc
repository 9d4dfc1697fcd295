// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_start.h"

#include <pthread.h>

#include <atomic>

#include "rill/base/status_macros.h"
#include "rill/device/cuda/cuda_status.h"

namespace rill::cuda_internal {
namespace {

std::atomic<bool> driver_touched{false};
std::atomic<bool> forked_after_touch{false};
std::atomic<int> num_devices{0};  // 0: not known yet.

// Only the child of a process that has touched the driver is spoilt.
void AfterForkInChild() {
  if (driver_touched.load(std::memory_order_relaxed)) {
    forked_after_touch.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

absl::StatusOr<int> StartCuda() {
  if (forked_after_touch.load(std::memory_order_relaxed)) {
    return FailedPrecondition(
        "CudaBackend: this process was forked from one that had started CUDA, "
        "and a driver does not survive a fork; start workers as new processes, "
        "or before the first use of CUDA");
  }
  // Only a success is kept; a failure is asked for again. Two threads that come
  // here first both ask, and store the same number.
  if (const int count = num_devices.load(std::memory_order_relaxed);
      count > 0) {
    return count;
  }
  // Before the driver is touched, so that no fork after the touch is missed.
  [[maybe_unused]] static const int watching =
      pthread_atfork(nullptr, nullptr, AfterForkInChild);
  driver_touched.store(true, std::memory_order_relaxed);
  int count = 0;
  RILL_CUDA_RETURN_IF_ERROR("NumDevices", cudaGetDeviceCount(&count));
  if (count == 0) return CudaStatus(cudaErrorNoDevice, "NumDevices");
  num_devices.store(count, std::memory_order_relaxed);
  return count;
}

absl::Status ScopedDevice::Enter(int index) {
  RILL_ASSIGN_OR_RETURN(const int count, StartCuda());
  if (index < 0 || index >= count) {
    return InvalidArgument("CudaBackend: index: got ", index, ", want [0, ",
                           count, ")");
  }
  RILL_RETURN_IF_ERROR(TheLostDevices().Check(index));
  WorkOn(index);
  int before = 0;
  RILL_CUDA_RETURN_IF_ERROR("cudaGetDevice", cudaGetDevice(&before));
  if (before == index) return absl::OkStatus();
  RILL_CUDA_RETURN_IF_ERROR("cudaSetDevice", cudaSetDevice(index));
  before_ = before;
  return absl::OkStatus();
}

ScopedDevice::~ScopedDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

}  // namespace rill::cuda_internal
