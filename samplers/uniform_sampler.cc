// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_sampler.h"

#include <string>
#include <utility>

#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"

namespace rill {

std::unique_ptr<Sampler> MakeUniformSampler() {
  return *MakeSampler(MakeUniformSelector(), MakeTransitionUnit(),
                      "UniformSampler");
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeUniformSamplerOver(
    SampleUnit unit) {
  const std::string name = unit.SamplerName("UniformSampler");
  return MakeSampler(MakeUniformSelector(), std::move(unit), name);
}

}  // namespace rill
