// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CUDA_BLOCK_POOL_H_
#define RILL_DEVICE_CUDA_BLOCK_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace rill {

// Memory that is slow to get and to give back, such as page-locked memory: a
// block that was freed serves the next allocation of its size. So a steady
// state takes none.
//
// Sizes are rounded up to powers of two from kMinBytes on. Blocks above
// kMaxBytes are not kept, and have the size that was asked for.
// Thread-safety: thread-safe.
// Cost: a lock and a search among some twenty sizes; else that of `allocate`.
class BlockPool {
 public:
  static constexpr int64_t kMinBytes = int64_t{4} << 10;
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;

  using AllocateFn = std::function<absl::StatusOr<void*>(int64_t bytes)>;
  using FreeFn = std::function<void(void* data)>;

  // Keeps at most `most_unused_bytes` that nobody uses.
  BlockPool(int64_t most_unused_bytes, AllocateFn allocate, FreeFn free)
      : most_unused_bytes_(most_unused_bytes),
        allocate_(std::move(allocate)),
        free_(std::move(free)) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // `bytes` > 0. The error of `allocate`, after one more try without the blocks
  // that were kept.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  // A block that Allocate gave for so many bytes; its last use is complete.
  void Free(void* data, int64_t bytes);

 private:
  void GiveBackUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t most_unused_bytes_;
  const AllocateFn allocate_;
  const FreeFn free_;
  absl::Mutex mutex_;
  std::map<int64_t, std::vector<void*>> unused_ ABSL_GUARDED_BY(mutex_);
  int64_t unused_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rill

#endif  // RILL_DEVICE_CUDA_BLOCK_POOL_H_
