// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_DEVICE_POOL_H_
#define RILL_DEVICE_CUDA_DEVICE_POOL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace rill::cuda_internal {

// Memory of one device from a pool of Rill's own: what is freed serves the next
// allocation without a call of the driver, which takes up to milliseconds. Up
// to 1/16 of the device's memory stays in the pool unused; the rest goes back
// to the device at the next synchronisation.
// Thread-safety: thread-safe.
class DevicePool {
 public:
  // That of the thread's current device, `index`. Made at the first call.
  static absl::StatusOr<DevicePool*> Of(int index);

  // Any stream may use the memory when this returns. Waits for no work but its
  // own.
  cudaError_t Allocate(int64_t bytes, void** data);
  // The last use is complete.
  void Free(void* data);

  // Lets another device copy from and to this memory directly; false where the
  // two have no way to each other. Cost: two calls of the driver, once.
  absl::StatusOr<bool> OpenTo(int index) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for work on `stream` alone; cudaFreeAsync on that stream frees it.
  cudaError_t AllocateAsync(int64_t bytes, cudaStream_t stream, void** data);

 private:
  DevicePool(int index, cudaMemPool_t pool, cudaStream_t stream)
      : index_(index), pool_(pool), stream_(stream) {}
  static absl::StatusOr<DevicePool*> Create(int index);

  const int index_;
  const cudaMemPool_t pool_;
  const cudaStream_t stream_;  // Of Allocate and Free.
  absl::Mutex mutex_;
  // The answers of OpenTo, by device.
  absl::flat_hash_map<int, bool> is_open_to_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rill::cuda_internal

#endif  // RILL_DEVICE_CUDA_DEVICE_POOL_H_
