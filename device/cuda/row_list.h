// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_ROW_LIST_H_
#define RILL_DEVICE_CUDA_ROW_LIST_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace rill::cuda_internal {

// Scattered rows without repetition: the threads of a kernel have no order, so
// the last place of each row is chosen on the host. `places` stays empty where
// no row repeats. Cost: O(rows).
struct LastPlaces {
  std::vector<int64_t> rows, places;
};
LastPlaces KeepLastPlaces(absl::Span<const int64_t> rows);

// Numbers on the device, for the work that is enqueued on `stream` while this
// lives: the memory goes back to the stream's pool behind that work.
// Thread-safety: thread-compatible.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(cudaStream_t stream) : stream_(stream) {}
  ~DeviceNumbers();
  DeviceNumbers(const DeviceNumbers&) = delete;
  DeviceNumbers& operator=(const DeviceNumbers&) = delete;

  // Once. `numbers` is pageable memory, so the runtime has staged it when this
  // returns. None leaves data() null.
  absl::Status Upload(absl::Span<const int64_t> numbers);
  const int64_t* data() const { return data_; }

 private:
  cudaStream_t stream_;
  int64_t* data_ = nullptr;
};

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_ROW_LIST_H_
