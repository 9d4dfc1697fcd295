// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_STEP_RECORDER_H_
#define RILL_ENVS_STEPS_STEP_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/steps/host_mirror.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Lays steps [lanes] side by side into a batch [lanes, time] in host memory.
//
// Thread-safety: thread-compatible. Holds the leaves' bytes on both sides.
// Device/Stream: leaves on a device are copied to the host first (HostMirror).
// Cost: Record is one copy of `width` bytes a lane and leaf, without look-ups
//   and allocation.
class StepRecorder {
 public:
  StepRecorder() = default;

  // `batch` must hold every leaf of `spec` as [lanes, time, ...], to be written
  // in place by the rule of reuse (MayReuse); it may hold more.
  // INVALID_ARGUMENT names the leaf that does not fit.
  static absl::StatusOr<StepRecorder> Create(const TensorDictSpec& spec,
                                             const TensorDict& batch);

  // Resolves where the rows of `step` [lanes] stand: once, as long as its
  // leaves stay the same tensors, else before every Record. A leaf that is not
  // contiguous is copied here, so it needs a Bind a step. Errors as
  // BoundRows::Bind, and as HostMirror::Add of leaves on a device.
  absl::Status Bind(const TensorDict& step);

  // Copies the bound rows to time `t` in [0, time) of the batch. Errors are
  // those of a device.
  absl::Status Record(int64_t t) const;

 private:
  absl::StatusOr<TensorDict> Mirror(const TensorDict& step);

  std::vector<std::string> keys_;
  HostMirror mirror_;
  BoundRows from_;   // The leaves of a step, in the order of the spec.
  TensorDict step_;  // Keeps their bytes.
  TensorDict batch_;
  std::vector<std::byte*> to_;  // The first lane's first row of each leaf.
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_STEP_RECORDER_H_
