// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_RING_OPTIONS_H_
#define RILL_STORAGE_RING_RING_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill::storage_internal {

// The limits of every storage. A cursor a lane is made at once.
inline constexpr int64_t kMaxLanes = int64_t{1} << 24;
// The slots of all lanes: whatever storages and samplers keep for each, int64
// counts its bytes.
inline constexpr int64_t kMaxSlots = int64_t{1} << 40;

// INVALID_ARGUMENT, naming caller and option, unless `capacity` slots, in
// [1, kMaxSlots], can be divided among `lanes`, in [1, kMaxLanes].
// Thread-safety: thread-safe.
absl::Status CheckRingOptions(absl::string_view caller, int64_t capacity,
                              int64_t lanes);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_RING_OPTIONS_H_
