// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_CUDA_START_H_
#define RILL_DEVICE_CUDA_CUDA_START_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rill::cuda_internal {

// Starts the driver at the first call and counts the devices; later calls cost
// a load. FAILED_PRECONDITION without device or driver, and in a process that
// was forked after a first call. Thread-safety: thread-safe.
absl::StatusOr<int> StartCuda();

// Makes `index` the thread's current device, and puts the one before back.
// Thread-safety: thread-compatible.
class ScopedDevice {
 public:
  // Starts CUDA too. `index` in [0, devices) or INVALID_ARGUMENT. Where the
  // device is lost: the error that told so, without a call of the driver.
  absl::Status Enter(int index);
  ScopedDevice() = default;
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

 private:
  int before_ = -1;  // -1: nothing to put back.
};

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_CUDA_START_H_
