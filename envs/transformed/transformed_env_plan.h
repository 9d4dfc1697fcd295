// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_PLAN_H_
#define RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/device_step_copies.h"  // IWYU pragma: export
#include "rill/envs/steps/steps_on_device.h"     // IWYU pragma: export
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/steps/device_steps.h"  // IWYU pragma: export
#include "rill/transforms/steps/lane_work.h"

namespace rill::envs_internal {

// Which leaves lie between the transforms beside an environment, and which of
// them those behind the last transform see. For TransformedEnv only.
struct TransformedSteps {
  // The rows of a leaf between two transforms.
  struct Buffer {
    std::string key;
    LeafSpec spec;
    size_t stage = 0;  // How many transforms come before it.
    // The same in a saved state: that of the buffer in whose place it is on a
    // device. So states are those of environments in host memory.
    size_t saved_stage = 0;
    bool is_last = false;  // Those behind the last transform see its values.
    bool is_kept = false;  // Of the root, and read or written by a transform.
    // Kept for the environment alone, on a device: a state that was saved in
    // host memory has none.
    bool is_own = false;
    int64_t width = 0;  // Bytes of a lane.
    // Stage 0: the environment's own, or its copy on the host.
    Tensor tensor = {};
    // The caller's, of one that is last: a copy of a kept one, or the leaf on
    // the device.
    Tensor outer = {};
  };
  using RowCopy = transforms_internal::LaneCopy;
  // Leaves that a transform changes and an earlier one keeps.
  struct Copies {
    std::vector<RowCopy> before_reset;
    std::vector<RowCopy> before_step;
  };

  std::vector<Buffer> buffers;
  std::vector<std::vector<size_t>> used;       // Buffers of each transform.
  std::vector<std::vector<BoundLeaf>> leaves;  // The same, resolved.
  std::vector<std::vector<Tensor>> tensors;    // The same on a device.
  std::vector<Copies> copies;       // Before the calls of each transform.
  std::vector<RowCopy> carried;     // From next to the kept leaves of the root.
  std::vector<RowCopy> shown;       // From these to those that the caller sees.
  const std::byte* done = nullptr;  // The last next/done.
  bool replaces_action = false;     // The environment gets another leaf.

  EnvSpec spec;  // Behind the last transform.
  TensorDict step;
  // StepPlan's, of each transform.
  std::vector<std::vector<std::string>> statistics;
  std::vector<std::shared_ptr<const StepTransform>> frozen;
  // One of both where the environment is on a device. Its leaves are copied for
  // transforms that work in host memory; nothing is `shown` then.
  std::unique_ptr<DeviceStepCopies> copies_to_host;
  // Or all transforms work on the device.
  std::unique_ptr<StepsOnDevice> on_device;
};

// INVALID_ARGUMENT, starting with `caller`, names the transform that does not
// fit what comes before it, or that breaks what an Env promises of its steps.
absl::StatusOr<TransformedSteps> PlanTransformedSteps(
    absl::string_view caller, const Env& env,
    absl::Span<const std::unique_ptr<StepTransform>> transforms);

// The transform as one that works on a device; null where it does not.
const DeviceSteps* AsDeviceSteps(const StepTransform& transform);

// A copy of a transform's state, each tensor in a buffer of its own: one that
// nobody else holds may be written in place.
absl::StatusOr<TensorDict> OwnState(const TensorDict& state);
// The state with its tensors on a device; those that are there stay.
absl::StatusOr<TensorDict> StateOn(Device device, const TensorDict& state);

// `status`, with the transform's number and name.
absl::Status AnnotateTransform(const absl::Status& status, const Env& env,
                               size_t i, const StepTransform& transform);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_TRANSFORMED_TRANSFORMED_ENV_PLAN_H_
