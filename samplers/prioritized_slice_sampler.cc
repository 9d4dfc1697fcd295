// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized_slice_sampler.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/unit.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSliceSampler(
    const PrioritizedOptions& priorities, const SliceUnitOptions& slices,
    PrioritizedSelector** selector) {
  // A prioritized selector never asks the unit to pick, so a rule for that
  // would have no effect.
  if (slices.starts != SliceStarts::kTrajectories &&
      slices.starts != SliceStarts::kEpisodeStarts) {
    return InvalidArgument(
        "MakePrioritizedSliceSampler: starts: got another rule, want "
        "kTrajectories or kEpisodeStarts; priorities pick the starts");
  }
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit, MakeSliceUnit(slices));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<PrioritizedSelector> made,
                        PrioritizedSelector::Create(priorities));
  if (selector != nullptr) *selector = made.get();
  return MakeSampler(std::move(made), std::move(unit),
                     "PrioritizedSliceSampler");
}

}  // namespace rill
