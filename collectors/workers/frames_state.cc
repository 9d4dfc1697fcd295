// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/frames_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"

namespace rill::workers_internal {

absl::Status SaveFrames(const FramesState& place, TensorDict* state) {
  RILL_ASSIGN_OR_RETURN(
      Tensor tensor,
      Tensor::From<int64_t>({place.frames, place.next_worker}, Shape({2})));
  return state->Set("place", std::move(tensor));
}

absl::StatusOr<FramesState> LoadFrames(const TensorDict& state,
                                       int64_t workers) {
  const Tensor* const tensor = state.Find("place");
  const bool fits = tensor != nullptr && tensor->dtype() == DType::kInt64 &&
                    tensor->shape() == Shape({2}) && tensor->is_contiguous();
  const int64_t* const values = fits ? tensor->data<int64_t>() : nullptr;
  if (!fits || values[0] < 0 || values[1] < 0 || values[1] >= workers) {
    return absl::FailedPreconditionError(absl::StrCat(
        "LoadState: \"place\": got ",
        tensor == nullptr ? "none" : tensor->DebugString(),
        ", want int64[2], frames and a worker below ", workers,
        "; load what SaveState of a collector with as many workers wrote"));
  }
  return FramesState{.frames = values[0], .next_worker = values[1]};
}

absl::Status CheckTotal(absl::string_view caller, int64_t frames,
                        int64_t total) {
  if (total == -1 || frames < total) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(caller, "::Next: ", frames,
                                            " frames collected, total_frames"
                                            " = ",
                                            total, "; raise it to go on"));
}

}  // namespace rill::workers_internal
