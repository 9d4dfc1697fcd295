// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/block_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace rill {
namespace {

int64_t BlockBytes(int64_t bytes) {
  if (bytes > BlockPool::kMaxBytes) return bytes;
  return static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::max(bytes, BlockPool::kMinBytes))));
}

}  // namespace

BlockPool::~BlockPool() {
  absl::MutexLock lock(&mutex_);
  GiveBackUnused();
}

void BlockPool::GiveBackUnused() {
  for (const auto& [bytes, blocks] : unused_) {
    for (void* const block : blocks) free_(block);
  }
  unused_.clear();
  unused_bytes_ = 0;
}

absl::StatusOr<void*> BlockPool::Allocate(int64_t bytes) {
  const int64_t size = BlockBytes(bytes);
  {
    absl::MutexLock lock(&mutex_);
    std::vector<void*>& blocks = unused_[size];
    if (!blocks.empty()) {
      void* const block = blocks.back();
      blocks.pop_back();
      unused_bytes_ -= size;
      return block;
    }
  }
  absl::StatusOr<void*> block = allocate_(size);
  if (block.ok()) return block;
  absl::MutexLock lock(&mutex_);
  if (unused_bytes_ == 0) return block;
  GiveBackUnused();
  return allocate_(size);
}

void BlockPool::Free(void* data, int64_t bytes) {
  const int64_t size = BlockBytes(bytes);
  {
    absl::MutexLock lock(&mutex_);
    if (size <= kMaxBytes && unused_bytes_ + size <= most_unused_bytes_) {
      unused_[size].push_back(data);
      unused_bytes_ += size;
      return;
    }
  }
  free_(data);
}

}  // namespace rill
