// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_SLICE_SAMPLER_H_
#define RILL_SAMPLERS_PRIORITIZED_SLICE_SAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/units/slice_unit.h"

namespace rill {

// Slices whose first rows are drawn in proportion to their priorities:
// TorchRL's PrioritizedSliceSampler. A draw is a slice's first row; its weight
// is that of the slice, and UpdatePriorities gives that row a priority. Rows
// that can start no slice are never drawn, and keep their priority until they
// can.
//
// SliceUnitOptions::starts must be kTrajectories, its default, which says
// nothing here, or kEpisodeStarts. With span_left the slices that begin before
// a trajectory go with its first row. Where `selector` is given it is set to
// the sampler's own, whose alpha and beta may be changed as long as the sampler
// lives.
//
// INVALID_ARGUMENT where an option is out of its range. Plan fails as that of
// slice_sampler.h, and with FAILED_PRECONDITION also where no start has a
// priority above 0.
//
// Thread-safety: thread-safe.
// Cost: prioritized_selector.h and units/slice_unit.h. A plan changes nothing.
//
// Example (PrioritizedSliceSamplerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Sampler> sampler,
//       MakePrioritizedSliceSampler({.alpha = 0.7}, {.length = 4}));
absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSliceSampler(
    const PrioritizedOptions& priorities, const SliceUnitOptions& slices,
    PrioritizedSelector** selector = nullptr);

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITIZED_SLICE_SAMPLER_H_
