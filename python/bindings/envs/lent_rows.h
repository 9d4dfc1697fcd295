// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_LENT_ROWS_H_
#define RILL_PYTHON_BINDINGS_ENVS_LENT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::python {

// Has a batch recorded in the memory of `rows`, or in new memory where that is
// of another shape.
class LentRows final : public Sink {
 public:
  LentRows(const TensorDictSpec& spec, TensorDict* rows)
      : spec_(spec), rows_(rows) {}

  bool is_written() const { return is_written_; }

  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    if (rows_->empty() || rows_->batch_shape() != shape) {
      RILL_ASSIGN_OR_RETURN(*rows_, spec_.Empty(shape, Tensor::Options()));
    }
    is_lent_ = true;
    return *rows_;
  }
  absl::Status Write(const TensorDict& batch,
                     const WriteInfo& /*info*/) override {
    // A batch that an interrupt ended, or that another sink has refused, lies
    // elsewhere.
    if (!is_lent_ || batch.batch_shape() != rows_->batch_shape()) {
      RILL_ASSIGN_OR_RETURN(*rows_, batch.Clone());
    }
    is_written_ = true;
    return absl::OkStatus();
  }
  absl::Status Cut(int64_t /*producer*/, LaneRange /*lanes*/) override {
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  const TensorDictSpec& spec_;
  TensorDict* const rows_;
  bool is_lent_ = false;
  bool is_written_ = false;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_LENT_ROWS_H_
