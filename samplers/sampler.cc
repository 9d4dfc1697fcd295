// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sampler.h"

#include "rill/samplers/arguments.h"

namespace rill {

absl::Status Sampler::UpdatePriorities(absl::Span<const Draw> draws,
                                       absl::Span<const float> priorities) {
  return samplers_internal::CheckPriorities(name(), draws, priorities);
}

}  // namespace rill
