// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/batch_memory.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/flow/packed_leaves.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

constexpr int64_t kHugePagesFrom = 4 << 20;  // Buffer::Allocate.

}  // namespace

absl::StatusOr<std::vector<TensorDict>> MakeBatchMemory(
    const TensorDictSpec& layout, const Shape& batch_shape) {
  const int64_t bytes =
      flow_internal::PackedBytes(layout, batch_shape.num_elements());
  std::vector<TensorDict> batches;
  if (bytes < kMinBatchMemoryBytes || bytes >= kHugePagesFrom) {
    RILL_ASSIGN_OR_RETURN(batches.emplace_back(),
                          layout.Empty(batch_shape, {}));
    return batches;
  }
  const int64_t count = (kHugePagesFrom + bytes - 1) / bytes;
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> memory,
                        Buffer::Allocate(count * bytes));
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(batches.emplace_back(),
                          flow_internal::ViewPackedLeaves(
                              layout, batch_shape, memory->data() + i * bytes,
                              memory, /*is_writable=*/true));
  }
  return batches;
}

}  // namespace rill
