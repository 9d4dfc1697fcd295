// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_VALUE_LIMITS_H_
#define RILL_DISTRIBUTED_TRANSPORT_VALUE_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/base/state/saved_state.h"

namespace rill {

// The values of a message: what SavedState::Decode takes, for engines, which
// say so before they send.
inline constexpr int64_t kMaxValues = 4096;    // Of one state.
inline constexpr int64_t kMaxValueDepth = 16;  // States in one another.

// INVALID_ARGUMENT where the receiver would refuse them: more than that, or a
// name that is empty.
// Thread-safety: thread-safe. Cost: O(values).
absl::Status CheckValues(const SavedState& values);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_VALUE_LIMITS_H_
