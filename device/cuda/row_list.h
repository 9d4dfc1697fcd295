// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_ROW_LIST_H_
#define RILL_DEVICE_CUDA_ROW_LIST_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/device/cuda/row_copy_kernels.h"

namespace rill::cuda_internal {

// Scattered rows without repetition: the threads of a kernel have no order, so
// the last place of each row is chosen on the host. `places` stays empty where
// no row repeats. Cost: O(rows).
struct LastPlaces {
  std::vector<int64_t> rows, places;
};
LastPlaces KeepLastPlaces(absl::Span<const int64_t> rows);

// Numbers for the kernels that are enqueued on `stream` while this lives. A few
// go with the launch; more lie on the device, in memory that goes back to the
// pool behind that work.
// Thread-safety: thread-compatible.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(cudaStream_t stream) : stream_(stream) {}
  ~DeviceNumbers();
  DeviceNumbers(const DeviceNumbers&) = delete;
  DeviceNumbers& operator=(const DeviceNumbers&) = delete;

  // Once. Device `index` is the current one. `numbers` is pageable memory, so
  // the runtime has staged it when this returns.
  absl::Status Upload(int index, absl::Span<const int64_t> numbers);
  // For a launch; lives no longer than the numbers.
  NumberList list() const { return list_; }

 private:
  cudaStream_t stream_;
  NumberList list_;
  bool is_on_device_ = false;
};

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_ROW_LIST_H_
