// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_SEQUENCE_UNIT_H_
#define RILL_SAMPLERS_UNITS_SEQUENCE_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/row_windows.h"

namespace rill {

// The treatment of a sequence that goes on where its trajectory does not.
enum class SequenceEnd {
  // Its last row is repeated; the plan's mask is 0 there.
  kPad,
  // It ends with its trajectory, and the batch gets smaller.
  kStop,
  // It is none: only sequences that are whole are drawn.
  kStrict,
  // It begins earlier, so that the steps to learn from end with the trajectory:
  // TorchRL's "stop". The anchor stays the row that was drawn. A trajectory of
  // fewer steps begins with its first row and is padded as with kPad; so are
  // bootstrap steps.
  kShift,
  // It goes on with the next rows of its lane, of any trajectory: TorchRL's
  // "include_reset". So does its burn-in, backwards. The newest and the oldest
  // live row of the lane are repeated where it would go beyond them, with a 0
  // in the mask. For recurrent networks that reset their state at `is_init`.
  kIncludeReset,
};

struct SequenceUnitOptions {
  // T, the steps to learn from, >= 1.
  int64_t length = 0;
  // K, the steps before them that warm up a recurrent state.
  int64_t burn_in = 0;
  // The steps behind those to learn from, for targets of the last of them.
  int64_t bootstrap = 0;
  // Every `dilation`-th row of the trajectory is a step of the sequence, >= 1.
  int64_t dilation = 1;
  // The steps to learn from begin at every `period`-th row of the trajectory,
  // counted from its own first one, >= 1. Neighbours have length - period of
  // them in common (at dilation 1): R2D2's overlap of 40 in 80 is period = 40.
  int64_t period = 1;
  SequenceEnd end = SequenceEnd::kPad;
  // Only sequences all of whose burn-in is stored. Else rows that are not
  // there are the first that is, with a 0 in the mask. Not with kIncludeReset.
  bool needs_burn_in = false;
  // Rows beside each sequence: n-step returns and frame stacks over its rows.
  // Only of sequences of consecutive rows: not with a dilation above 1 or
  // kIncludeReset.
  RowWindows windows = {};
};

// Sequences with burn-in for recurrent networks: TorchRL's Sequence, R2D2's
// replay. An item is K + T + bootstrap rows of one trajectory
// (trajectories/trajectory_index.h), in order. The pick is the first of the T.
// So the mask of what to learn from is the same for each: it leaves out the
// first K rows. The mask of the plan (plan.mask) is empty where no row pads.
// Batch sizes count rows: B rows take B / (K + T + bootstrap) picks.
//
// The anchors are the rows that a period begins with; a uniform selector draws
// each with the same probability. Eviction does not move them, so live rows
// before the first anchor that is left of a trajectory are in no sequence. To
// have each row of a round once, clear the buffer between rounds
// (ReplayBuffer::Clear). Periods count from a trajectory's first step, or from
// the first row that the unit saw where others were there before.
//
// Source: Kapturowski et al., "Recurrent experience replay in distributed
//   reinforcement learning", ICLR 2019.
//
// INVALID_ARGUMENT where an option is out of range, or two of them contradict
// each other, naming them.
//
// Cost: a pick O(log trajectories + log pieces), its rows O(log pieces + rows),
//   or O(rows x log pieces) with a dilation; events as the index.
//
// Example (SequenceUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Unit> sequences,
//       MakeSequenceUnit({.length = 4, .burn_in = 2, .period = 2}));
absl::StatusOr<std::unique_ptr<Unit>> MakeSequenceUnit(
    const SequenceUnitOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_SEQUENCE_UNIT_H_
