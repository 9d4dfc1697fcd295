// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_LANE_RESULTS_H_
#define RILL_TRANSFORMS_STEPS_LANE_RESULTS_H_

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill::transforms_internal {

// Leaves [lanes, ...] that a DeviceSteps computes as a whole. Where the call
// names lanes, their rows alone are taken: they are computed beside the leaf.
// So a map of batches serves a reset too.
// Thread-safety: thread-compatible.
class LaneResults {
 public:
  // Both outlive this; the work is on the call's stream.
  LaneResults(const DeviceSteps::Call* call, DeviceWork::Call* work)
      : call_(call), work_(work) {}

  // Where the values of `to` are to be written.
  absl::StatusOr<Tensor> PlaceOf(const Tensor& to) {
    if (call_->mask == nullptr || to.num_elements() == 0) return to;
    RILL_ASSIGN_OR_RETURN(Tensor beside, work_->Take(to.dtype(), to.shape()));
    lanes_ = to.shape()[0];
    copies_.push_back({.from = beside.raw_data(),
                       .to = to.raw_data(),
                       .width = to.size_bytes() / lanes_});
    return beside;
  }
  // Behind the work that writes there.
  absl::Status Finish() {
    if (copies_.empty()) return absl::OkStatus();
    return CopyLanes(copies_, lanes_, call_->mask, call_->stream);
  }

 private:
  const DeviceSteps::Call* const call_;
  DeviceWork::Call* const work_;
  int64_t lanes_ = 0;
  absl::InlinedVector<LaneCopy, 8> copies_;
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STEPS_LANE_RESULTS_H_
