// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/sharing/lease_list.h"

#include <algorithm>

namespace rill::storage_internal {
namespace {

bool Overlaps(const SlotRange& a, const SlotRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

}  // namespace

std::shared_ptr<const std::atomic<bool>> LeaseList::Add(SlotRange range) {
  auto is_valid = std::make_shared<std::atomic<bool>>(true);
  absl::MutexLock lock(&mutex_);
  if (leases_.size() >= drop_at_) DropReturned();
  leases_.push_back({range, is_valid});
  count_ = leases_.size();
  return is_valid;
}

void LeaseList::DropReturned() {
  const auto is_returned = [](const Lease& lease) {
    return lease.is_valid.expired();
  };
  leases_.erase(std::remove_if(leases_.begin(), leases_.end(), is_returned),
                leases_.end());
  // A sweep comes when the list has doubled, so Add is O(1) amortised.
  drop_at_ = std::max<size_t>(16, 2 * leases_.size());
}

void LeaseList::End(absl::Span<const SlotRange> ranges) {
  // One load: every write comes here.
  if (!any()) return;
  absl::MutexLock lock(&mutex_);
  const auto is_over = [ranges](const Lease& lease) {
    for (const SlotRange& range : ranges) {
      if (!Overlaps(lease.range, range)) continue;
      if (const auto flag = lease.is_valid.lock()) *flag = false;
      return true;
    }
    return false;
  };
  leases_.erase(std::remove_if(leases_.begin(), leases_.end(), is_over),
                leases_.end());
  count_ = leases_.size();
}

void LeaseList::EndAll() {
  absl::MutexLock lock(&mutex_);
  for (const Lease& lease : leases_) {
    if (const auto flag = lease.is_valid.lock()) *flag = false;
  }
  leases_.clear();
  count_ = 0;
}

}  // namespace rill::storage_internal
