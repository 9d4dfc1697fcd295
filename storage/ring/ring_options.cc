// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ring/ring_options.h"

#include "rill/base/status_macros.h"

namespace rill::storage_internal {

absl::Status CheckRingOptions(absl::string_view caller, int64_t capacity,
                              int64_t lanes) {
  const auto refuse = [&](absl::string_view option, int64_t got,
                          const auto&... want) {
    return InvalidArgument(caller, ": Options::", option, ": got ", got,
                           ", want ", want...);
  };
  if (capacity <= 0 || capacity > kMaxSlots) {
    return refuse("capacity", capacity, "in [1, ", kMaxSlots, "]");
  }
  if (lanes <= 0 || lanes > kMaxLanes) {
    return refuse("lanes", lanes, "in [1, ", kMaxLanes, "]");
  }
  if (capacity % lanes != 0) {
    return refuse("capacity", capacity, "a multiple of lanes = ", lanes);
  }
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
