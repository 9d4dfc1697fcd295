// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/block_pool.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"

namespace rill::ranks_internal {
namespace {

// Smaller ones come from the allocator's own lists.
constexpr int64_t kMinBytes = 64 << 10;

}  // namespace

class BlockPool::Kept {
 public:
  explicit Kept(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // The last one of about that size that came back, or null.
  std::shared_ptr<Buffer> Take(int64_t bytes) {
    absl::MutexLock lock(&mu_);
    const auto found =
        std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const auto& block) {
          return block->size_bytes() >= bytes &&
                 block->size_bytes() - bytes <= bytes / 4;
        });
    if (found == blocks_.rend()) return nullptr;
    std::shared_ptr<Buffer> block = std::move(*found);
    blocks_.erase(std::next(found).base());
    bytes_ -= block->size_bytes();
    return block;
  }
  int64_t bytes() {
    absl::MutexLock lock(&mu_);
    return bytes_;
  }
  void Give(std::shared_ptr<Buffer> block) {
    absl::MutexLock lock(&mu_);
    bytes_ += block->size_bytes();
    blocks_.push_back(std::move(block));
    while (bytes_ > max_bytes_) {
      bytes_ -= blocks_.front()->size_bytes();
      blocks_.pop_front();
    }
  }

 private:
  const int64_t max_bytes_;
  absl::Mutex mu_;
  std::deque<std::shared_ptr<Buffer>> blocks_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

BlockPool::BlockPool(int64_t max_kept_bytes)
    : kept_(std::make_shared<Kept>(max_kept_bytes)) {}

int64_t BlockPool::kept_bytes() const { return kept_->bytes(); }

absl::StatusOr<std::shared_ptr<Buffer>> BlockPool::Take(int64_t bytes) {
  if (bytes < kMinBytes) return Buffer::Allocate(bytes);
  std::shared_ptr<Buffer> block = kept_->Take(bytes);
  if (block == nullptr) {
    RILL_ASSIGN_OR_RETURN(block, Buffer::Allocate(bytes));
  }
  void* const data = block->data();
  std::shared_ptr<const void> owner(
      data, [kept = kept_, block = std::move(block)](const void*) mutable {
        kept->Give(std::move(block));
      });
  return Buffer::Wrap(data, bytes, Device::Cpu(), MemoryKind::kPageable,
                      std::move(owner));
}

}  // namespace rill::ranks_internal
