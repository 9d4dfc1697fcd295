// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_
#define RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// Says of each row of a batch of sequences where it stands: burn_in rows before
// an anchor, `length` rows to learn from that begin with it, and `bootstrap`
// rows behind those. What TorchRL's Sequence unit reports.
//
// Plan: no context; rows of sequences with the draws as segments, each of
//   burn_in + length + bootstrap rows, mask 0 where a row only pads.
// Adds, all [R]:
//   sequence_id       int64  which draw
//   step_in_sequence  int64  0 .. burn_in + length + bootstrap - 1
//   learning_mask     bool   neither burn-in nor bootstrap
//   validity_mask     bool   no padding
//   anchor_index      int64  the slot of the draw
//
// Example (SequenceMarksTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto marks, SequenceMarks::Create({.length = 8, .burn_in = 4}));
class SequenceMarks {
 public:
  struct Options {
    int64_t length = 1;     // >= 1. Each at most 2^30.
    int64_t burn_in = 0;    // >= 0.
    int64_t bootstrap = 0;  // >= 0.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_SEQUENCE_MARKS_H_
