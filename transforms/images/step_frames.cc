// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/step_frames.h"

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/steps/lane_results.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill::transforms_internal {
namespace {

// [lanes, outer, frames, elements of a piece]
absl::StatusOr<Tensor> PiecesOf(const Tensor& leaf, int64_t outer,
                                int64_t frames) {
  const int64_t lanes = leaf.shape()[0];
  return leaf.ViewAs({lanes, outer, frames,
                      leaf.num_elements() / (lanes * outer * frames)});
}

// Frames [begin, end) of a stack.
absl::Status CopyFrames(const Tensor& from, const Tensor& to, int64_t begin,
                        int64_t end, ElementCopies* copies) {
  RILL_ASSIGN_OR_RETURN(const Tensor place, to.Slice(2, begin, end));
  RILL_ASSIGN_OR_RETURN(const Tensor frames, from.Expand(place.shape()));
  return copies->Add(frames, place);
}

}  // namespace

absl::Status BeginStack(const StepStack& stacked, const Tensor& frame,
                        const std::byte* pad, const Tensor& stack,
                        const DeviceSteps::Call& call, DeviceWork* memory) {
  DeviceWork::Call work(memory);
  RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
  LaneResults results(&call, &work);
  RILL_ASSIGN_OR_RETURN(const Tensor place, results.PlaceOf(stack));
  if (pad != nullptr) {
    RILL_RETURN_IF_ERROR(FillLanesWith(pad, nullptr, place, call.stream));
  }
  RILL_ASSIGN_OR_RETURN(const Tensor from, PiecesOf(frame, stacked.outer, 1));
  RILL_ASSIGN_OR_RETURN(const Tensor to,
                        PiecesOf(place, stacked.outer, stacked.n));
  ElementCopies copies(&call.stream);
  RILL_RETURN_IF_ERROR(CopyFrames(from, to, pad == nullptr ? 0 : stacked.n - 1,
                                  stacked.n, &copies));
  RILL_RETURN_IF_ERROR(copies.Launch());
  RILL_RETURN_IF_ERROR(results.Finish());
  return work.End();
}

absl::Status PushFrame(const StepStack& stacked, const Tensor& stack,
                       const Tensor& frame, const Tensor& next,
                       const DeviceSteps::Call& call) {
  RILL_ASSIGN_OR_RETURN(const Tensor before,
                        PiecesOf(stack, stacked.outer, stacked.n));
  RILL_ASSIGN_OR_RETURN(const Tensor newest, PiecesOf(frame, stacked.outer, 1));
  RILL_ASSIGN_OR_RETURN(const Tensor to,
                        PiecesOf(next, stacked.outer, stacked.n));
  ElementCopies copies(&call.stream);
  if (stacked.n > 1) {
    RILL_ASSIGN_OR_RETURN(const Tensor kept, before.Slice(2, 1, stacked.n));
    RILL_RETURN_IF_ERROR(CopyFrames(kept, to, 0, stacked.n - 1, &copies));
  }
  RILL_RETURN_IF_ERROR(
      CopyFrames(newest, to, stacked.n - 1, stacked.n, &copies));
  return copies.Launch();
}

}  // namespace rill::transforms_internal
