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

// Batches of so many bytes are worth memory of their own making.
inline constexpr int64_t kMinBatchMemoryBytes = 128 << 10;

// Batches of `layout` with any values, to be sent: one or, where one has
// kMinBatchMemoryBytes, as many as make at least 4 MiB together, for
// Buffer::Allocate then takes huge pages. An engine that copies from process to
// process, as MPI does, looks up each page of what is sent; small ones make
// that a quarter of the copy. The leaves of a batch have one buffer, which no
// other batch holds. The memory goes with the last of the batches. Every entry
// of `layout` is a tensor.
absl::StatusOr<std::vector<TensorDict>> MakeBatchMemory(
    const TensorDictSpec& layout, const Shape& batch_shape);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_BATCH_MEMORY_H_
