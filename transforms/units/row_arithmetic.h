// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_ROW_ARITHMETIC_H_
#define RILL_TRANSFORMS_UNITS_ROW_ARITHMETIC_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "rill/transforms/unit_transform.h"
#include "rill/transforms/units/n_step_returns.h"
#include "rill/transforms/units/sequence_marks.h"
#include "rill/transforms/units/slice_marks.h"
#include "rill/transforms/units/stack_frames.h"

namespace rill {

// The arithmetic on a unit's rows, slices or sequences: n-step returns, stacked
// frames, marks that say where a slice was cut or where a sequence's row
// stands. Any of these together, each described by its own header; with none,
// rows are as they are stored. replay/sample_units.h makes it with its unit.
//
// Together: stacks of "next/<key>" are those at the end of the window of steps.
// Marks of slices go into the flags that the windows end with, so both have one
// set of keys. A row of a draw that pads becomes what the row that it repeats
// becomes.
//
// Plan: slots/plan_layout.h; frames: kFramesBefore; n_step: kStepsBehind and
//   kWindowEnds, in this order. Every draw has a row that does not pad, and
//   none that pads between two such.
// Cost: O(rows of the batch x steps and frames). Each stored leaf of a draw's
//   rows is read once, into the batch or apart. Only the end of a window that
//   several rows have in common, at the end of a trajectory, is read for each.
//
// Example (RowArithmeticTest.Example runs it): what Rainbow makes of a row.
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<UnitTransform> rainbow,
//       RowArithmetic::Create(
//           {.n_step = NStepReturns::Options{.num_steps = 3},
//            .frames = StackFrames::Options{
//                .num_frames = 4, .keys = {"pixels", "next/pixels"}}}));
class RowArithmetic {
 public:
  struct Options {
    std::optional<NStepReturns::Options> n_step = std::nullopt;
    std::optional<StackFrames::Options> frames = std::nullopt;
    std::optional<SliceMarks::Options> slice_marks = std::nullopt;
    std::optional<SequenceMarks::Options> sequence_marks = std::nullopt;
  };

  // INVALID_ARGUMENT names the option, or two that contradict each other.
  static absl::StatusOr<std::unique_ptr<UnitTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_UNITS_ROW_ARITHMETIC_H_
