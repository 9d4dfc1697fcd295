// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/selector_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::samplers_internal {
namespace {

constexpr double kMaxDouble = std::numeric_limits<double>::max();

absl::string_view NameOf(NewRowPriority rule) {
  switch (rule) {
    case NewRowPriority::kGiven:
      return "kGiven";
    case NewRowPriority::kMaxEver:
      return "kMaxEver";
    case NewRowPriority::kMaxInBuffer:
      return "kMaxInBuffer";
    case NewRowPriority::kConstant:
      return "kConstant";
  }
  return "";
}

}  // namespace

// Not the device: a state of the host is one of a device too.
SelectorTraits PrioritizedTraits(
    const PrioritizedOptions& options, std::shared_ptr<PriorityUpdater> updater,
    std::shared_ptr<const PriorityMassGauge> mass) {
  return {.name = "Prioritized",
          .options = OptionValues()
                         .Double("alpha", options.alpha)
                         .Double("beta", options.beta)
                         .Double("epsilon", options.epsilon)
                         .Choice("new_rows", NameOf(options.new_rows))
                         .Double("new_row_priority", options.new_row_priority)
                         .Bool("stratified", options.stratified),
          .is_weighted = true,
          .loads_moved_rows = true,
          .priority_updater = std::move(updater),
          .priority_mass = std::move(mass)};
}

absl::Status CheckOptionRange(absl::string_view call, absl::string_view what,
                              double value, double max) {
  if (value >= 0 && value <= max) return absl::OkStatus();
  return InvalidArgument(
      "PrioritizedSelector::", call, ": ", what, ": got ", value,
      max < kMaxDouble ? absl::StrCat(", want a value in [0, ", max, "]")
                       : ", want a finite value >= 0");
}

absl::Status CheckExponent(absl::string_view call, absl::string_view what,
                           double value) {
  return CheckOptionRange(call, what, value, kMaxDouble);
}

absl::Status NothingToDraw(int64_t num_anchors) {
  return FailedPrecondition(
      "sum of the priorities of ", num_anchors,
      " rows: got 0, want > 0; update one to a higher one");
}

std::optional<float> GivenPriority(const WriteEvent& event, int64_t i) {
  if (event.priorities.empty()) return std::nullopt;
  const double given = event.priorities[i];
  if (!std::isfinite(given) || given < 0) return std::nullopt;
  // A double may lie above what float32 holds.
  return static_cast<float>(
      std::min<double>(given, std::numeric_limits<float>::max()));
}

void PriorityValues::Save(SavedState* state) const {
  state->Set("alpha", alpha);
  state->Set("beta", beta);
  state->Set("largest", double{largest.value_or(-1.0f)});
}

absl::StatusOr<PriorityValues> PriorityValues::Read(const SavedState& state) {
  RILL_ASSIGN_OR_RETURN(const auto alpha, state.Get<double>("alpha"));
  RILL_ASSIGN_OR_RETURN(const auto beta, state.Get<double>("beta"));
  RILL_ASSIGN_OR_RETURN(const auto largest, state.Get<double>("largest"));
  const bool is_good = std::isfinite(alpha) && alpha >= 0 &&
                       std::isfinite(beta) && beta >= 0 &&
                       (largest == -1 || largest >= 0) &&
                       largest <= std::numeric_limits<float>::max();
  if (!is_good) {
    return state.Damaged(absl::StrCat("alpha, beta and largest priority: got ",
                                      alpha, ", ", beta, " and ", largest,
                                      ", want finite values >= 0"));
  }
  PriorityValues values = {.alpha = alpha, .beta = beta};
  if (largest >= 0) values.largest = static_cast<float>(largest);
  return values;
}

}  // namespace rill::samplers_internal
