// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SLOT_LEASE_H_
#define RILL_STORAGE_SLOT_LEASE_H_

#include <atomic>
#include <memory>
#include <utility>

#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A run of stored rows seen in place, without a copy: valid until the next
// write to one of its slots, a Clear or a Load. The memory stays as long as the
// lease does. It is lent (Buffer::Lend): no Read writes there.
// Thread-safety: thread-compatible. The reader makes sure that nobody writes
// the rows meanwhile; valid() tells after.
class SlotLease {
 public:
  SlotLease(TensorDict rows, std::shared_ptr<const std::atomic<bool>> valid)
      : rows_(std::move(rows)), valid_(std::move(valid)) {}
  const TensorDict& rows() const { return rows_; }  // [count, ...]
  bool valid() const { return valid_->load(std::memory_order_acquire); }

 private:
  TensorDict rows_;
  std::shared_ptr<const std::atomic<bool>> valid_;
};

}  // namespace rill

#endif  // RILL_STORAGE_SLOT_LEASE_H_
