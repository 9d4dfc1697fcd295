// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_LANE_SINK_H_
#define RILL_PYTHON_BINDINGS_LANE_SINK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {

// Batches [time] of producers into a sink of lanes: producer i's into lane i.
// The other sink outlives it.
class LaneSink final : public Sink {
 public:
  explicit LaneSink(Sink* sink) : sink_(sink) {}

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    RILL_ASSIGN_OR_RETURN(const TensorDict lane, batch.Unsqueeze(0));
    WriteInfo of_lane = info;
    of_lane.first_lane = info.producer;
    return sink_->Write(lane, of_lane);
  }
  absl::Status Cut(int64_t producer, LaneRange /*lanes*/) override {
    return sink_->Cut(producer, {.first = producer, .count = 1});
  }
  absl::Status Flush() override { return sink_->Flush(); }

 private:
  Sink* const sink_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_LANE_SINK_H_
