// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/device_pool.h"

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/device/cuda/cuda_status.h"

namespace rill::cuda_internal {
namespace {

constexpr size_t kUnusedShare = 16;

// Pools live as long as the process: memory may be freed by destructors of
// static objects.
struct Pools {
  absl::Mutex mutex;
  absl::flat_hash_map<int, DevicePool*> by_device ABSL_GUARDED_BY(mutex);
};

Pools& AllPools() {
  static Pools& pools = *new Pools;
  return pools;
}

}  // namespace

absl::StatusOr<DevicePool*> DevicePool::Of(int index) {
  Pools& pools = AllPools();
  absl::MutexLock lock(&pools.mutex);
  DevicePool*& pool = pools.by_device[index];
  if (pool == nullptr) {
    RILL_ASSIGN_OR_RETURN(pool, Create(index));
  }
  return pool;
}

absl::StatusOr<DevicePool*> DevicePool::Create(int index) {
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {.type = cudaMemLocationTypeDevice, .id = index};
  cudaMemPool_t pool = nullptr;
  RILL_CUDA_RETURN_IF_ERROR("DevicePool", cudaMemPoolCreate(&pool, &props));
  size_t free = 0, total = 0;
  RILL_CUDA_RETURN_IF_ERROR("DevicePool", cudaMemGetInfo(&free, &total));
  uint64_t unused = total / kUnusedShare;
  RILL_CUDA_RETURN_IF_ERROR(
      "DevicePool",
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &unused));
  // Else an allocation could be ordered behind the work of a stream of somebody
  // else's, for which Allocate would wait.
  int no = 0;
  RILL_CUDA_RETURN_IF_ERROR(
      "DevicePool", cudaMemPoolSetAttribute(
                        pool, cudaMemPoolReuseAllowInternalDependencies, &no));
  cudaStream_t stream = nullptr;
  RILL_CUDA_RETURN_IF_ERROR(
      "DevicePool", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return new DevicePool(index, pool, stream);
}

absl::StatusOr<bool> DevicePool::OpenTo(int index) {
  absl::MutexLock lock(&mutex_);
  if (const auto known = is_open_to_.find(index); known != is_open_to_.end()) {
    return known->second;
  }
  int can_access = 0;
  RILL_CUDA_RETURN_IF_ERROR(
      "ReachesPeer", cudaDeviceCanAccessPeer(&can_access, index, index_));
  if (can_access != 0) {
    // Memory of a pool is opened by this and not by cudaDeviceEnablePeerAccess.
    cudaMemAccessDesc access = {};
    access.location = {.type = cudaMemLocationTypeDevice, .id = index};
    access.flags = cudaMemAccessFlagsProtReadWrite;
    RILL_CUDA_RETURN_IF_ERROR("ReachesPeer",
                              cudaMemPoolSetAccess(pool_, &access, 1));
  }
  return is_open_to_[index] = can_access != 0;
}

cudaError_t DevicePool::Allocate(int64_t bytes, void** data) {
  const cudaError_t error = AllocateAsync(bytes, stream_, data);
  return error == cudaSuccess ? cudaStreamSynchronize(stream_) : error;
}

void DevicePool::Free(void* data) { cudaFreeAsync(data, stream_); }

cudaError_t DevicePool::AllocateAsync(int64_t bytes, cudaStream_t stream,
                                      void** data) {
  return cudaMallocFromPoolAsync(data, static_cast<size_t>(bytes), pool_,
                                 stream);
}

}  // namespace rill::cuda_internal
