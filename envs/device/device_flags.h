// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_DEVICE_FLAGS_H_
#define RILL_ENVS_DEVICE_DEVICE_FLAGS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::envs_internal {

// The flags below `next` of an environment on a device: from what a simulator
// lends (DeviceEnvOptions) through host memory to the leaves of the step.
// Thread-safety: thread-compatible.
class DeviceFlags {
 public:
  DeviceFlags() = default;

  // Sets the flags below `next` in `step` to leaves of its own, false. Errors
  // of the device.
  static absl::StatusOr<DeviceFlags> Create(const EnvSpec& spec,
                                            TensorDict* step);

  // Enqueues copies of lent flags to the host. INVALID_ARGUMENT names flags
  // that are missing or do not fit.
  absl::Status Stage(const TensorDict& lent, const Stream& stream);
  // Once these are complete: makes the three flags of each.
  absl::Status Resolve();
  // Makes the lane, and its groups, done and truncated.
  void Truncate(int64_t lane);
  // Enqueues the copy of all flags to the leaves, which reads host memory until
  // the stream got there.
  absl::Status Write(const Stream& stream) const;

  // A lane's flag, after Resolve.
  bool done(int64_t lane) const { return groups_[0].flags[kDone][lane]; }

 private:
  enum Kind { kDone, kTerminated, kTruncated, kNumKinds };

  // Those of the lane, or of one group.
  struct Group {
    std::string prefix;  // "" or "agents/".
    Shape shape;         // [lanes, ...].
    std::array<absl::Span<bool>, kNumKinds> flags = {};
    // Copies of lent flags, in pinned memory; is_lent: at the last step.
    std::array<Tensor, kNumKinds> staged = {};
    std::array<bool, kNumKinds> is_lent = {};
  };

  absl::Status StageGroup(const TensorDict& lent, const Stream& stream,
                          Group* group) const;

  int64_t lanes_ = 0;
  Device device_;
  std::vector<Group> groups_;  // The lane's first.
  std::shared_ptr<Buffer> host_;
  std::shared_ptr<Buffer> leaves_;
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_DEVICE_DEVICE_FLAGS_H_
