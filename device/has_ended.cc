// SPDX-License-Identifier: Apache-2.0
#include "rill/device/has_ended.h"

#include "rill/base/status_macros.h"

namespace rill::device_internal {

absl::StatusOr<bool> HasEnded(const Event& event) {
  const absl::StatusOr<bool> is_complete = event.IsComplete();
  if (is_complete.ok()) return is_complete;
  RILL_RETURN_IF_ERROR(event.Synchronize());
  return true;
}

}  // namespace rill::device_internal
