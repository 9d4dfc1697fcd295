// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/slice_sampler.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/unit.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Sampler>> MakeSliceSampler(
    const SliceUnitOptions& options) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Unit> unit, MakeSliceUnit(options));
  return MakeSampler(MakeUniformSelector(), std::move(unit), "SliceSampler");
}

}  // namespace rill
