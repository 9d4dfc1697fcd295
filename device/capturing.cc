// SPDX-License-Identifier: Apache-2.0
#include "rill/device/capturing.h"

#include "rill/base/status_macros.h"

namespace rill::device_internal {
namespace {

thread_local bool is_capturing = false;

}  // namespace

Capturing::Capturing() { is_capturing = true; }
Capturing::~Capturing() { is_capturing = false; }

bool IsCapturing() { return is_capturing; }

absl::Status CheckNotCapturing(absl::string_view call) {
  if (!is_capturing) return absl::OkStatus();
  return FailedPrecondition(
      call,
      ": got a call while this thread captures a graph, want it before or "
      "behind the capture; a graph holds launches, copies and fills alone");
}

}  // namespace rill::device_internal
