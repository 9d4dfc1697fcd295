// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_HOST_MIRROR_H_
#define RILL_ENVS_STEPS_HOST_MIRROR_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Leaves of a step as the host reads them: a leaf in host memory as it is, a
// leaf on a device as a copy in pinned memory.
//
// Thread-safety: thread-compatible. Holds the leaves' bytes.
// Device/Stream: Update copies on `stream`, of the leaves' device, or on that
//   device's default stream, behind what was enqueued there, and waits. Work on
//   other streams must be complete.
// Cost: Update is one copy a leaf on a device and one wait for all of them.
class HostMirror {
 public:
  // The tensor that the host reads for `leaf`. INVALID_ARGUMENT where a leaf on
  // a device is not contiguous, or on another device than those before it.
  absl::StatusOr<Tensor> Add(const Tensor& leaf);

  absl::Status Update(const Stream* stream = nullptr) const;

 private:
  struct Copy {
    Tensor from;
    Tensor to;
  };
  std::vector<Copy> copies_;
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_HOST_MIRROR_H_
