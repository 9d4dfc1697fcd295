// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_KILLS_SHARD_PART_H_
#define RILL_DISTRIBUTED_KILLS_SHARD_PART_H_

#include <memory>

#include "absl/status/status.h"
#include "rill/distributed/kills/part_options.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// A shard, with a checkpoint each half second or so.
// Thread-safety: one call a process. Cost: runs until it is stopped.
absl::Status RunShard(std::shared_ptr<Transport> transport,
                      const PartOptions& options);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_KILLS_SHARD_PART_H_
