// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_HINDSIGHT_UNIT_H_
#define RILL_SAMPLERS_UNITS_HINDSIGHT_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/unit.h"

namespace rill {

// The row whose achieved goal becomes a row's goal. Live rows only.
enum class HindsightStrategy {
  // Any row of its trajectory from the row itself to the last one, each with
  // the same probability.
  kFuture,
  // The last row of its trajectory: of one that goes on, the newest.
  kFinal,
  // Any row of its trajectory.
  kEpisode,
  // Any row at all.
  kRandom,
};

struct HindsightUnitOptions {
  HindsightStrategy strategy = HindsightStrategy::kFuture;
  // Each draw is given another goal with this probability, in [0, 1].
  double ratio = 0.8;
};

// Rows, of which some get a goal that was reached: hindsight experience replay.
// Batch sizes count rows, every live row is an anchor, and the draws are those
// of transitions (same seed, same rows): plan.rows is empty.
//
//   plan.context[0]: for each draw that gets another goal the row that reached
//     it; plan.context[0].segments tell which draws those are. No mask.
//
// Source: Andrychowicz et al., "Hindsight experience replay", NIPS 2017, whose
//   k new goals for each old one are ratio = k / (k + 1).
//
// INVALID_ARGUMENT where `ratio` is out of range.
//
// Cost: a draw O(log lanes + log pieces); events as the index.
//
// Example (HindsightUnitTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit,
//                         MakeHindsightUnit({.ratio = 0.5}));
absl::StatusOr<std::unique_ptr<Unit>> MakeHindsightUnit(
    const HindsightUnitOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_HINDSIGHT_UNIT_H_
