// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/sampler_facts.h"

#include <cstddef>
#include <cstdint>

#include "rill/base/file.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/old_state.h"
#include "rill/samplers/prioritized/priority_state.h"
#include "rill/samplers/sampler.h"

namespace rill::inspect {
namespace {

// The slots that hold rows, as they are and where they are.
absl::StatusOr<MovedRows> ReadLiveRows(const SavedState& state,
                                       const Lanes& lanes) {
  MovedRows rows = {.from = lanes};
  RILL_ASSIGN_OR_RETURN(const auto count, state.Get<int64_t>("lanes"));
  RILL_ASSIGN_OR_RETURN(const auto capacity, state.Get<int64_t>("capacity"));
  if (count != lanes.count || capacity != lanes.capacity) {
    return state.DoesNotFit("lanes: got others than the buffer's");
  }
  RILL_ASSIGN_OR_RETURN(const auto runs, state.Ints("generations", 2));
  Slot slot = 0;
  for (size_t i = 0; i < runs.size(); i += 2) {
    const int64_t slots = runs[i];
    if (slots < 1 || slots > lanes.num_slots() - slot) {
      return state.Damaged("runs of generations do not cover the slots");
    }
    if (runs[i + 1] >= 0) rows.ranges.push_back({slot, slot, slots});
    slot += slots;
  }
  return rows;
}

// A state of version 1 does not say of which unit and selector it is: a
// prioritized one of one of these units fits to the last byte, or it is of
// another.
absl::StatusOr<SavedState> FromPrioritizedOldState(absl::string_view bytes) {
  for (const absl::string_view unit : {"Transition", "Slice", "Sequence"}) {
    absl::StatusOr<SavedState> state =
        samplers_internal::FromOldState(bytes, [&](absl::string_view part) {
          return std::string(part == "unit" ? unit : "Prioritized");
        });
    if (state.ok()) return state;
  }
  return NotFound("another sampler's");
}

}  // namespace

absl::Status AddPriorities(const std::string& path, const Lanes& lanes,
                           Facts* facts) {
  RILL_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadFile(JoinPath(path, "sampler.state")));
  const absl::StatusOr<SavedState> state = samplers_internal::IsOldState(bytes)
                                               ? FromPrioritizedOldState(bytes)
                                               : SavedState::Decode(bytes);
  // A newer form is no damage, only not known here.
  if (absl::IsFailedPrecondition(state.status()) ||
      absl::IsNotFound(state.status())) {
    return absl::OkStatus();
  }
  RILL_RETURN_IF_ERROR(state.status());
  const auto selector = state->Part("selector", "Prioritized", 1);
  if (!selector.ok()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const MovedRows rows, ReadLiveRows(*state, lanes));
  Spread priorities;
  RILL_RETURN_IF_ERROR(samplers_internal::LoadMovedPriorities(
      **selector, rows,
      [&](Slot, float priority) { priorities.Add(priority); }));
  facts->priorities = priorities;
  return absl::OkStatus();
}

}  // namespace rill::inspect
