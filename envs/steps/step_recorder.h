// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_STEP_RECORDER_H_
#define RILL_ENVS_STEPS_STEP_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Lays steps [lanes] side by side into a batch [lanes, time].
//
// Thread-safety: thread-compatible. Holds the leaves' bytes on both sides.
// Cost: Record is one copy of `width` bytes a lane and leaf, without look-ups
//   and allocation.
class StepRecorder {
 public:
  StepRecorder() = default;

  // `batch` must hold every leaf of `spec`, contiguous, as [lanes, time, ...];
  // it may hold more. INVALID_ARGUMENT names the leaf that does not fit.
  static absl::StatusOr<StepRecorder> Create(const TensorDictSpec& spec,
                                             const TensorDict& batch);

  // Resolves where the rows of `step` [lanes] stand: once, as long as its
  // leaves stay the same tensors, else before every Record. INVALID_ARGUMENT
  // names a leaf of the spec that is missing or has another layout. A leaf that
  // is not contiguous is copied here, so it needs a Bind a step.
  absl::Status Bind(const TensorDict& step);

  // Copies the bound rows to time `t` in [0, time) of the batch.
  void Record(int64_t t) const;

 private:
  struct Column {
    std::string key;
    LeafSpec spec;
    Tensor from;  // Keeps the bytes.
    std::byte* to = nullptr;
    int64_t width = 0;  // Bytes of a row.
    int64_t to_lane_stride = 0;
  };

  int64_t lanes_ = 0;
  TensorDict batch_;  // Keeps the bytes.
  std::vector<Column> columns_;
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_STEP_RECORDER_H_
