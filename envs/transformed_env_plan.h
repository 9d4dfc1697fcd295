// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TRANSFORMED_ENV_PLAN_H_
#define RILL_ENVS_TRANSFORMED_ENV_PLAN_H_

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
#include "rill/envs/env.h"
#include "rill/envs/steps/device_step_copies.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"

namespace rill::envs_internal {

// Which leaves lie between the transforms beside an environment, and which of
// them those behind the last transform see. For TransformedEnv only.
struct TransformedSteps {
  // The rows of a leaf between two transforms.
  struct Buffer {
    std::string key;
    LeafSpec spec;
    size_t stage = 0;      // How many transforms come before it.
    bool is_last = false;  // Those behind the last transform see its values.
    bool is_kept = false;  // Of the root, and read or written by a transform.
    int64_t width = 0;     // Bytes of a lane.
    // Stage 0: the environment's own, or its copy where that is on a device.
    Tensor tensor = {};
    // The caller's, of one that is last: a copy of a kept one, or the leaf on
    // the device.
    Tensor outer = {};
  };
  // Rows of `width` bytes that go from one tensor to another.
  struct RowCopy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    int64_t width = 0;
  };
  // Leaves that a transform changes and an earlier one keeps.
  struct Copies {
    std::vector<RowCopy> before_reset;
    std::vector<RowCopy> before_step;
  };

  std::vector<Buffer> buffers;
  std::vector<std::vector<size_t>> used;       // Buffers of each transform.
  std::vector<std::vector<BoundLeaf>> leaves;  // The same, resolved.
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
  // Null where the environment is in host memory. Nothing is `shown` here.
  std::unique_ptr<DeviceStepCopies> device;
};

// INVALID_ARGUMENT, starting with `caller`, names the transform that does not
// fit what comes before it, or that breaks what an Env promises of its steps.
absl::StatusOr<TransformedSteps> PlanTransformedSteps(
    absl::string_view caller, const Env& env,
    absl::Span<const std::unique_ptr<StepTransform>> transforms);

// A copy of a transform's state, each tensor in a buffer of its own: one that
// nobody else holds may be written in place.
absl::StatusOr<TensorDict> OwnState(const TensorDict& state);

// `status`, with the transform's number and name.
absl::Status AnnotateTransform(const absl::Status& status, const Env& env,
                               size_t i, const StepTransform& transform);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_TRANSFORMED_ENV_PLAN_H_
