// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_PACKED_LEAVES_H_
#define RILL_FLOW_PACKED_LEAVES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::flow_internal {

// The leaves of a batch in memory that processes share: row-major, one behind
// the other in the order of the spec, each at a multiple of kAlignment.
inline constexpr int64_t kAlignment = 64;

// Bytes of `rows` rows, a multiple of kAlignment; -1 where they do not fit in
// int64.
int64_t PackedBytes(const TensorDictSpec& spec, int64_t rows);

// Entries that are no tensors cannot be packed, and must not be lost:
// INVALID_ARGUMENT names the key.
absl::Status CheckOnlyTensors(absl::string_view caller,
                              const TensorDict& batch);

// Copies the leaves of a batch that fits `spec` (CheckLayout), but for those
// that lie in their places (ViewPackedLeaves). INVALID_ARGUMENT, starting with
// `caller`, names one that lies elsewhere in this memory; else only a device
// can fail.
absl::Status PackLeaves(absl::string_view caller, const TensorDictSpec& spec,
                        const TensorDict& batch, std::byte* to);

// Views of what was packed, or is to be filled in place. `owner` keeps the
// bytes.
absl::StatusOr<TensorDict> ViewPackedLeaves(
    const TensorDictSpec& spec, const Shape& batch_shape, std::byte* from,
    const std::shared_ptr<const void>& owner, bool is_writable = false);

}  // namespace rill::flow_internal

#endif  // RILL_FLOW_PACKED_LEAVES_H_
