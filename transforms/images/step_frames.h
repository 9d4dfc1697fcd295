// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_STEP_FRAMES_H_
#define RILL_TRANSFORMS_IMAGES_STEP_FRAMES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"  // IWYU pragma: export
#include "rill/transforms/steps/device_steps.h"  // IWYU pragma: export

namespace rill::transforms_internal {

// Stacks of CatFrames of lanes on a device: leaves [lanes, ...] of n frames, of
// which each is `outer` pieces (FramePieces, units/stack_frames.h).
struct StepStack {
  int64_t outer = 1;
  int64_t n = 1;
};

// Stacks of the lanes that the call names: `frame` as the newest, and before it
// the same or, unless `pad` is null, that element.
absl::Status BeginStack(const StepStack& stacked, const Tensor& frame,
                        const std::byte* pad, const Tensor& stack,
                        const DeviceSteps::Call& call, DeviceWork* memory);
// `next`: the frames of `stack` but for the oldest, and `frame` behind them.
absl::Status PushFrame(const StepStack& stacked, const Tensor& stack,
                       const Tensor& frame, const Tensor& next,
                       const DeviceSteps::Call& call);

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_IMAGES_STEP_FRAMES_H_
