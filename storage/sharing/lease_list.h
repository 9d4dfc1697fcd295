// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SHARING_LEASE_LIST_H_
#define RILL_STORAGE_SHARING_LEASE_LIST_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// Which runs of slots are lent out, so that a write can tell their holders.
// Thread-safety: thread-safe.
// Cost: an end of leases is O(leases x ranges); a load while none is out.
class LeaseList {
 public:
  // The flag of a new lease: true until a write ends it.
  std::shared_ptr<const std::atomic<bool>> Add(SlotRange range);
  // Some may be out. A lease that begins while a call runs may be missed.
  bool any() const { return count_.load(std::memory_order_acquire) > 0; }
  // Ends the leases that have a slot in `ranges` / all of them.
  void End(absl::Span<const SlotRange> ranges);
  void EndAll();

 private:
  struct Lease {
    SlotRange range;
    std::weak_ptr<std::atomic<bool>> is_valid;
  };
  void DropReturned() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<size_t> count_{0};  // As leases_.size().
  absl::Mutex mutex_;
  std::vector<Lease> leases_ ABSL_GUARDED_BY(mutex_);
  // Leases that were given back are dropped when the list has grown to this.
  size_t drop_at_ ABSL_GUARDED_BY(mutex_) = 16;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SHARING_LEASE_LIST_H_
