// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_FRAMES_STATE_H_
#define RILL_COLLECTORS_WORKERS_FRAMES_STATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// How far a collector with workers is: int64 `place` [2] of its state.
struct FramesState {
  int64_t frames = 0;
  int64_t next_worker = 0;
};

absl::Status SaveFrames(const FramesState& place, TensorDict* state);
// FAILED_PRECONDITION where there is none that fits `workers`.
absl::StatusOr<FramesState> LoadFrames(const TensorDict& state,
                                       int64_t workers);

// OUT_OF_RANGE where `total` (-1: none) frames are collected.
absl::Status CheckTotal(absl::string_view caller, int64_t frames,
                        int64_t total);

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_FRAMES_STATE_H_
