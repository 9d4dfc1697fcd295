// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_SHARDS_SHARD_WEIGHTS_H_
#define RILL_DISTRIBUTED_SHARDS_SHARD_WEIGHTS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::shards_internal {

// Rows of one shard, and its priorities as it sent them.
struct ShardPart {
  TensorDict rows;
  PriorityMass mass;
};

// All here is thread-safe for different parts. MassOf is O(1), Reweigh O(rows).

// The priorities of a table by its reply. FAILED_PRECONDITION where it says
// nothing of them, DATA_LOSS where that is none.
absl::StatusOr<PriorityMass> MassOf(const SavedState& values);

// Makes the weights within a shard, (v / its min) ^ -its beta, those of all
// shards, whose smallest v is `min`: (v / min) ^ -beta. Without `beta` that of
// the shard. FAILED_PRECONDITION where that is 0, so that its weights say
// nothing, and `beta` is not.
absl::Status Reweigh(double min, std::optional<double> beta, ShardPart* part);

}  // namespace rill::shards_internal

#endif  // RILL_DISTRIBUTED_SHARDS_SHARD_WEIGHTS_H_
