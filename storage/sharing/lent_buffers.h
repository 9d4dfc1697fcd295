// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SHARING_LENT_BUFFERS_H_
#define RILL_STORAGE_SHARING_LENT_BUFFERS_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/device/buffer.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::storage_internal {

// The memory that leases of other storages gave out, for one that is made of
// them: rows that lie there change under a write that reads them more than
// once.
// Thread-safety: thread-safe.
// Cost: O(leaves x buffers); as many buffers as those storages have for rows.
class LentBuffers {
 public:
  // The rows of a lease.
  void Add(const TensorDict& rows);
  // `rows`, or a copy of them where one of their leaves lies in lent memory.
  absl::StatusOr<TensorDict> OwnRows(const TensorDict& rows) const;

 private:
  mutable absl::Mutex mutex_;
  std::vector<const Buffer*> buffers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SHARING_LENT_BUFFERS_H_
