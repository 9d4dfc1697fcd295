// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_WINDOW_UNIT_H_
#define RILL_SAMPLERS_UNITS_WINDOW_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/row_windows.h"

namespace rill {

// Single rows with the rows around them that their arithmetic needs. n-step
// returns are summed over the n - 1 steps behind each row. Where a storage
// keeps single frames, the N - 1 before it make a stack of N. Both at once is
// what Rainbow learns Atari games from. row_windows.h describes the lists of
// context.
//
// Batch sizes count rows, every live row is an anchor, and the draws are those
// of transitions (same seed, same rows): plan.rows is empty.
//
// INVALID_ARGUMENT where a number is out of range or both are 0, and of Plan
// where the rows of a batch with those beside are above
// Sampler::kMaxBatchSize.
//
// Cost: a draw O(log lanes + log pieces + N + n); events as the index.
//
// Example (WindowUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit,
//                         MakeWindowUnit({.frames = 4, .steps = 3}));
absl::StatusOr<std::unique_ptr<Unit>> MakeWindowUnit(const RowWindows& windows);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_WINDOW_UNIT_H_
