// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_HAS_ENDED_H_
#define RILL_DEVICE_HAS_ENDED_H_

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/device/stream.h"

namespace rill::device_internal {

// Whether the work before `event` is over; an error is that work's, which is
// over too. An event that cannot be asked (Event::IsComplete) is waited for, so
// that memory of work under way is never taken for free.
// Thread-safety: thread-safe. Cost: that of IsComplete.
inline absl::StatusOr<bool> HasEnded(const Event& event) {
  const absl::StatusOr<bool> is_complete = event.IsComplete();
  if (is_complete.ok()) return is_complete;
  RILL_RETURN_IF_ERROR(event.Synchronize());
  return true;
}

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_HAS_ENDED_H_
