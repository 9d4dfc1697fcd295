// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized_sampler.h"

#include <string>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/transition_unit.h"

namespace rill {

absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSampler(
    const PrioritizedOptions& options, PrioritizedSelector** selector) {
  return MakePrioritizedSamplerOver(MakeTransitionUnit(), options, selector);
}

absl::StatusOr<std::unique_ptr<Sampler>> MakePrioritizedSamplerOver(
    SampleUnit unit, const PrioritizedOptions& options,
    PrioritizedSelector** selector) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<PrioritizedSelector> made,
                        PrioritizedSelector::Create(options));
  if (selector != nullptr) *selector = made.get();
  const std::string name = unit.SamplerName("PrioritizedSampler");
  return MakeSampler(std::move(made), std::move(unit), name);
}

}  // namespace rill
