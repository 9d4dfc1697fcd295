// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CAPTURING_H_
#define RILL_DEVICE_CAPTURING_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rill::device_internal {

// While it lives, its thread captures work (graphs/graph.h). One at a time.
// Thread-safety: of one thread.
class Capturing {
 public:
  Capturing();
  ~Capturing();
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
};

// This thread captures work.
bool IsCapturing();

// FAILED_PRECONDITION where it does: `call` would happen once, now, and not at
// each launch of the graph. Cost: a load.
absl::Status CheckNotCapturing(absl::string_view call);

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_CAPTURING_H_
