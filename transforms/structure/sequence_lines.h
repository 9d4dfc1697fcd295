// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STRUCTURE_SEQUENCE_LINES_H_
#define RILL_TRANSFORMS_STRUCTURE_SEQUENCE_LINES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// A sample of sequences or slices, one behind the other, becomes one line each,
// as recurrent networks take them: what TorchRL's users do by
// sample.reshape(-1, length).
//
// Shapes: [S * length] rows become [S, length], named ["sequences", "time"]. A
//   batch whose rows are named "rows" (windows, dilated sequences) keeps that
//   name in the last dimension. Rows keep their order and shapes.
// Errors: INVALID_ARGUMENT where lines would not be whole sequences: the batch
//   has another number of rows, or units of fewer rows than `length`, which
//   `step_in_sequence` tells, and for slices a "next/done" inside a line with
//   rows behind it that do not pad ("collector/mask").
// Thread-safety: immutable.
// Cost: views; O(rows) looks at the marks.
//
// Example (SequenceLinesTest.Example runs it):
//   // Burn-in, steps to learn from and bootstrap together.
//   RILL_ASSIGN_OR_RETURN(auto lines, SequenceLines::Create({.length = 12}));
struct SequenceLines {
  struct Options {
    int64_t length = 0;  // > 0
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STRUCTURE_SEQUENCE_LINES_H_
