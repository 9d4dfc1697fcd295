// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_WAITING_SINK_H_
#define RILL_PYTHON_BINDINGS_WAITING_SINK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/flow/sink.h"
#include "rill/python/bindings/in_call.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::python {

// Another sink, which outlives it. It notes where that one has not let a batch
// in in time: what fills it may be late too. `object` is what InCall knows that
// one by.
class WaitingSink final : public Sink {
 public:
  WaitingSink(Sink* sink, const void* object) : sink_(sink), object_(object) {}

  bool is_late() const { return is_late_; }

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    const InCall in_call(object_);
    absl::Status written = sink_->Write(batch, info);
    is_late_ = absl::IsDeadlineExceeded(written);
    return written;
  }
  absl::Status Cut(int64_t producer, LaneRange lanes) override {
    const InCall in_call(object_);
    return sink_->Cut(producer, lanes);
  }
  absl::Status Flush() override { return sink_->Flush(); }
  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    return sink_->Reserve(shape);
  }

 private:
  Sink* const sink_;
  const void* const object_;
  bool is_late_ = false;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_WAITING_SINK_H_
