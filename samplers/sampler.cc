// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sampler.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/arguments.h"

namespace rill {

MovedRows MovedRows::Of(const Lanes& from, const Lanes& to,
                        absl::Span<const Cursor> cursors) {
  MovedRows moved{.from = from};
  for (int64_t lane = 0; lane < from.count; ++lane) {
    const int64_t end = cursors[lane].written;
    int64_t step = end - std::min({end, from.capacity, to.capacity});
    while (step < end) {
      const int64_t was = step % from.capacity;
      const int64_t is = step % to.capacity;
      // As many steps as wrap around in neither ring.
      const int64_t count =
          std::min({end - step, from.capacity - was, to.capacity - is});
      moved.ranges.push_back({.from = from.SlotOf(lane, was),
                              .to = to.SlotOf(lane, is),
                              .count = count});
      step += count;
    }
  }
  std::sort(moved.ranges.begin(), moved.ranges.end(),
            [](const Range& a, const Range& b) { return a.from < b.from; });
  return moved;
}

absl::Status Sampler::UpdatePriorities(absl::Span<const Draw> draws,
                                       absl::Span<const float> priorities) {
  return samplers_internal::CheckPriorities(name(), draws, priorities);
}

absl::StatusOr<Sampler::EpochRest> Sampler::RestOfEpoch(
    const Request& /*request*/) const {
  return FailedPrecondition(
      name(),
      "::RestOfEpoch: sampler: got one without epochs, want one that "
      "goes through its items, as SamplerWithoutReplacement");
}

absl::Status Sampler::LoadState(absl::string_view state,
                                const LoadOptions& options) {
  if (!options.changed.empty() && !traits_.loads_changed_options) {
    return FailedPrecondition(
        name(), "::LoadState: other options: got ",
        absl::StrJoin(options.changed, ", "),
        ", want none: this sampler cannot take over its state with others");
  }
  if (options.moved != nullptr && !traits_.loads_moved_rows) {
    return FailedPrecondition(
        name(),
        "::LoadState: moved rows: got the state of other slots, want that of "
        "these; load into a storage of the same capacity");
  }
  return DoLoadState(state, options);
}

}  // namespace rill
