// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_SAMPLE_ORIGINS_H_
#define RILL_REPLAY_SAMPLE_ORIGINS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/slots/slot.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// The leaves that a sample has beside the rows' own.
inline constexpr absl::string_view kIndexKey = "index";
inline constexpr absl::string_view kGenerationKey = "index_generation";
inline constexpr absl::string_view kWeightKey = "priority_weight";
inline constexpr absl::string_view kMaskKey = "collector/mask";

// An int64 leaf as contiguous host numbers, whatever its shape and place.
// NOT_FOUND, INVALID_ARGUMENT with another dtype; errors name `caller`.
absl::StatusOr<Tensor> NumbersOf(absl::string_view caller,
                                 const TensorDict& batch,
                                 absl::string_view key);

// Slots and generations of the rows of a sample, in its order.
// INVALID_ARGUMENT where the two leaves differ in size.
absl::StatusOr<std::vector<Draw>> DrawsOf(absl::string_view caller,
                                          const TensorDict& sample);

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_SAMPLE_ORIGINS_H_
