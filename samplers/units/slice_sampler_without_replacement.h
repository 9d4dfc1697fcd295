// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_SLICE_SAMPLER_WITHOUT_REPLACEMENT_H_
#define RILL_SAMPLERS_UNITS_SLICE_SAMPLER_WITHOUT_REPLACEMENT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/samplers/sampler.h"

namespace rill {

struct SliceSamplerWithoutReplacementOptions {
  // As SliceUnitOptions (units/slice_unit.h).
  int64_t length = 0;
  int64_t num_slices = 0;
  int64_t batch_size = 0;
  bool is_strict = true;
  bool is_padded = false;
  // As WithoutReplacementOptions (selectors/without_replacement.h), of slices.
  bool shuffle = true;
  bool drop_last = false;
};

// One slice of each trajectory an epoch: TorchRL's
// SliceSamplerWithoutReplacement with slice_len. Trajectories come in a random
// order, another one each epoch, or in the order of the slots of their first
// rows. The start of a slice in its trajectory is drawn uniformly. The last
// batch of an epoch has the slices that are left. A plan for B rows has B / T
// picks, which name the trajectories by their first live rows; plan.rows are
// the slices.
//
// An epoch goes over the trajectories that there are when it begins; those that
// come meanwhile wait for the next one, where TorchRL begins anew. Rows that a
// trajectory gains are seen at once. In a full ring a trajectory that loses its
// first rows during an epoch waits for the next one. Only where trajectories
// have fewer than two rows each on average an epoch starts anew when the
// storage grows, and a trajectory that loses its first rows may come twice.
//
// Errors as those of slice_sampler.h, and with drop_last FAILED_PRECONDITION of
// Plan where a batch takes more slices than there are trajectories.
//
// Thread-safety: thread-safe.
// Cost: units/slice_unit.h and selectors/without_replacement.h; the plan that
//   begins an epoch O(trajectories log trajectories), those within it O(batch)
//   whatever is written meanwhile.
//
// Example (SliceSamplerWithoutReplacementTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Sampler> sampler,
//       MakeSliceSamplerWithoutReplacement({.length = 4}));
absl::StatusOr<std::unique_ptr<Sampler>> MakeSliceSamplerWithoutReplacement(
    const SliceSamplerWithoutReplacementOptions& options);

}  // namespace rill

#endif  // RILL_SAMPLERS_UNITS_SLICE_SAMPLER_WITHOUT_REPLACEMENT_H_
