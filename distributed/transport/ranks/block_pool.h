// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_BLOCK_POOL_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_BLOCK_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/buffer.h"

namespace rill::ranks_internal {

// Memory for what arrives, used again: the pages of a new block of some
// megabytes cost as much as a copy into them.
//
// Blocks may outlive the pool. Those that nobody has any more are kept for the
// next ones, up to a number of bytes, and the oldest go first.
// Thread-safety: thread-safe.
// Cost: O(blocks that are kept).
class BlockPool {
 public:
  explicit BlockPool(int64_t max_kept_bytes);

  // With any bytes. RESOURCE_EXHAUSTED where there is no memory.
  absl::StatusOr<std::shared_ptr<Buffer>> Take(int64_t bytes);

  // The bytes of blocks that nobody has.
  int64_t kept_bytes() const;

 private:
  class Kept;

  const std::shared_ptr<Kept> kept_;
};

}  // namespace rill::ranks_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_BLOCK_POOL_H_
