// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SLICE_SAMPLER_H_
#define RILL_SAMPLERS_SLICE_SAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/units/slice_unit.h"

namespace rill {

// Slices of T consecutive steps of one trajectory, with replacement: TorchRL's
// SliceSampler, with slice_len (`length`) or num_slices. A plan for B rows has
// B / T picks, which are the slices' first rows; plan.rows are the slices one
// after the other, and plan.segments tell which is whose.
//
// Beside what Sampler promises, Plan is INVALID_ARGUMENT where T does not
// divide the batch size, and FAILED_PRECONDITION where no trajectory is long
// enough; it says how long they are. Here: INVALID_ARGUMENT where the options
// contradict each other.
//
// Unlike TorchRL no slice is empty, whatever the span, and rows of several
// producers may alternate in a lane. A write costs O(rows written), a slice
// O(log trajectories + T), whatever the capacity. Truncating a batch's slices
// at their last row is a transform's.
//
// Thread-safety: thread-safe.
//
// Example (SliceSamplerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler,
//                         MakeSliceSampler({.length = 4}));
//   RILL_RETURN_IF_ERROR(storage->AddObserver(sampler->observer()));
//   SamplePlan plan;  // 8 slices.
//   RILL_RETURN_IF_ERROR(sampler->Plan({.batch_size = 32, .seed = 1}, &plan));
absl::StatusOr<std::unique_ptr<Sampler>> MakeSliceSampler(
    const SliceUnitOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_SLICE_SAMPLER_H_
