// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/arguments.h"

#include <cmath>

#include "rill/base/status_macros.h"

namespace rill::samplers_internal {

absl::Status CheckBatchSize(absl::string_view sampler, int64_t batch_size,
                            int64_t max_batch_size) {
  if (batch_size >= 1 && batch_size <= max_batch_size) return absl::OkStatus();
  return InvalidArgument(sampler, "::Plan: batch size: got ", batch_size,
                         ", want one in [1, ", max_batch_size, "]");
}

absl::Status CheckPriorities(absl::string_view sampler,
                             absl::Span<const Draw> draws,
                             absl::Span<const float> priorities) {
  if (draws.size() != priorities.size()) {
    return InvalidArgument(sampler, "::UpdatePriorities: priorities: got ",
                           priorities.size(), " of them, want one for each of ",
                           draws.size(), " draws");
  }
  // All are checked before any is taken. NaN fails the comparison too.
  for (size_t i = 0; i < priorities.size(); ++i) {
    if (std::isfinite(priorities[i]) && priorities[i] >= 0) continue;
    return InvalidArgument(sampler, "::UpdatePriorities: priority ", i,
                           " (slot ", draws[i].slot, "): got ", priorities[i],
                           ", want a finite value >= 0");
  }
  return absl::OkStatus();
}

}  // namespace rill::samplers_internal
