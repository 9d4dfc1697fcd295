// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/slice_sampler_without_replacement.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/unit.h"
#include "rill/samplers/units/slice_unit.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Sampler>> MakeSliceSamplerWithoutReplacement(
    const SliceSamplerWithoutReplacementOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      std::unique_ptr<Unit> unit,
      MakeSliceUnit({.length = options.length,
                     .num_slices = options.num_slices,
                     .batch_size = options.batch_size,
                     .is_strict = options.is_strict,
                     .is_padded = options.is_padded,
                     .starts = SliceStarts::kOnePerTrajectory}));
  return MakeSampler(
      MakeWithoutReplacementSelector(
          {.shuffle = options.shuffle, .drop_last = options.drop_last}),
      std::move(unit), "SliceSamplerWithoutReplacement");
}

}  // namespace rill
