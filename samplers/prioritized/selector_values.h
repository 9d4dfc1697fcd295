// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_SELECTOR_VALUES_H_
#define RILL_SAMPLERS_PRIORITIZED_SELECTOR_VALUES_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/prioritized/priority_mass.h"
#include "rill/samplers/prioritized/priority_updater.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// What prioritized selectors on the host and on a device have in common, for
// both of their sources alone.

SelectorTraits PrioritizedTraits(const PrioritizedOptions& options,
                                 std::shared_ptr<PriorityUpdater> updater,
                                 std::shared_ptr<const PriorityMassGauge> mass);

absl::Status CheckOptionRange(absl::string_view call, absl::string_view what,
                              double value, double max);
absl::Status CheckExponent(absl::string_view call, absl::string_view what,
                           double value);
// FAILED_PRECONDITION of a plan over as many anchors, whose sum is 0.
absl::Status NothingToDraw(int64_t num_anchors);

// The priority that row `i` of a write came with; none where it came with none
// that counts.
std::optional<float> GivenPriority(const WriteEvent& event, int64_t i);

// A state but for the priorities.
struct PriorityValues {
  double alpha = 0;
  double beta = 0;
  std::optional<float> largest = std::nullopt;

  void Save(SavedState* state) const;
  static absl::StatusOr<PriorityValues> Read(const SavedState& state);
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_SELECTOR_VALUES_H_
