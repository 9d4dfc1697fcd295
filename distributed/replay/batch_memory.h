// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_BATCH_MEMORY_H_
#define RILL_DISTRIBUTED_REPLAY_BATCH_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// From this size on several batches are made at once.
inline constexpr int64_t kMinBatchMemoryBytes = 128 << 10;

// Batches of `layout` to be sent, with any values: one, or several in one
// block. An engine that copies from process to process, as MPI does, looks up
// each page of what is sent; small pages make that a quarter of the copy. So
// batches of kMinBatchMemoryBytes to 4 MiB share a block of at least 4 MiB,
// for which Buffer::Allocate takes huge pages.
//
// Every entry of `layout` is a tensor. The leaves of a batch have one buffer,
// which no other batch holds. A block goes with the last of its batches.
// Errors: those of TensorDictSpec::Empty and Buffer::Allocate, as
//   RESOURCE_EXHAUSTED where there is no memory.
// Thread-safety: thread-safe.
// Cost: one allocation, and a TensorDict a batch: 32 at most.
absl::StatusOr<std::vector<TensorDict>> MakeBatchMemory(
    const TensorDictSpec& layout, const Shape& batch_shape);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_BATCH_MEMORY_H_
