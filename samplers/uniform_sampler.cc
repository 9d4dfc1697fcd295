// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/uniform_sampler.h"

#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"

namespace rill {

std::unique_ptr<Sampler> MakeUniformSampler() {
  return *MakeSampler(MakeUniformSelector(), MakeTransitionUnit(),
                      "UniformSampler");
}

}  // namespace rill
