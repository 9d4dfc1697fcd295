// SPDX-License-Identifier: Apache-2.0
// Saved are the slots of the first rows of the trajectories that are cut, in
// order, and of each set, in its order.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/changed_options.h"
#include "rill/samplers/trajectories/trajectory_index.h"

namespace rill {
namespace {

// The set of the rule with this number.
std::string StartsName(size_t rule) { return absl::StrCat("starts_", rule); }

absl::Status OtherRows(const SavedState& state, absl::string_view what,
                       int64_t got, absl::string_view want) {
  return state.DoesNotFit(
      absl::StrCat(what, ": got ", got, ", want ", want,
                   "; load after the storage has got the rows of the save"));
}

}  // namespace

void TrajectoryIndex::Save(SavedState* state) const {
  // Handles depend on a history that an index attached to the same rows has not
  // seen. The first slot names a trajectory in both.
  const auto first_slot = [&](Handle handle) {
    return runs_.SlotOf(runs_.at(handle).lane, runs_.FirstStep(handle));
  };
  std::vector<Slot> cut;
  for (Handle handle = 0; handle < runs_.num_handles(); ++handle) {
    const Runs::Record& record = runs_.at(handle);
    if (record.rows > 0 && record.is_cut) cut.push_back(first_slot(handle));
  }
  std::sort(cut.begin(), cut.end());
  state->Set("rows", num_rows());
  state->Set("trajectories", num_trajectories());
  state->Set("cut", std::move(cut));
  for (size_t i = 0; i < sets_.size(); ++i) {
    std::vector<Slot> starts;
    for (const Handle handle : sets_[i].members()) {
      starts.push_back(first_slot(handle));
    }
    state->Set(StartsName(i), std::move(starts));
  }
}

absl::StatusOr<std::vector<TrajectoryIndex::Handle>>
TrajectoryIndex::ReadTrajectories(const SavedState& state,
                                  absl::string_view name) const {
  RILL_ASSIGN_OR_RETURN(const auto slots, state.Ints(name));
  std::vector<Handle> handles;
  std::vector<bool> is_named(runs_.num_handles(), false);
  for (const Slot slot : slots) {
    const std::optional<Place> place = Find(slot);
    if (!place.has_value() || place->offset != 0 ||
        is_named[place->trajectory]) {
      return OtherRows(state, "trajectory at slot", slot,
                       "the first slot of another one");
    }
    is_named[place->trajectory] = true;
    handles.push_back(place->trajectory);
  }
  return handles;
}

absl::Status TrajectoryIndex::Load(
    const SavedState& state, const samplers_internal::ChangedOptions& changed) {
  RILL_ASSIGN_OR_RETURN(const auto rows, state.Get<int64_t>("rows"));
  RILL_ASSIGN_OR_RETURN(const auto trajectories,
                        state.Get<int64_t>("trajectories"));
  if (rows != num_rows()) {
    return OtherRows(state, "rows", rows, absl::StrCat(num_rows()));
  }
  if (trajectories != num_trajectories()) {
    return OtherRows(state, "trajectories", trajectories,
                     absl::StrCat(num_trajectories()));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<Handle> cut,
                        ReadTrajectories(state, "cut"));
  std::vector<bool> is_cut(runs_.num_handles(), false);
  for (const Handle handle : cut) is_cut[handle] = true;

  // Everything is read and checked before the first change.
  std::vector<std::optional<std::vector<Handle>>> orders;
  for (const StartRule& rule : rules_) {
    RILL_ASSIGN_OR_RETURN(std::vector<Handle> order,
                          ReadTrajectories(state, StartsName(orders.size())));
    // By the cuts of the save, which the index takes over only below.
    const auto has_start = [&](Handle handle) {
      const Runs::Record& record = runs_.at(handle);
      return rule.Count(record.rows, is_cut[handle], record.is_closed) > 0;
    };
    int64_t want = 0;
    for (Handle handle = 0; handle < runs_.num_handles(); ++handle) {
      if (has_start(handle)) ++want;
    }
    if (static_cast<int64_t>(order.size()) != want ||
        !std::all_of(order.begin(), order.end(), has_start)) {
      if (changed.Any()) {  // Of a rule with other starts.
        orders.push_back(std::nullopt);
        continue;
      }
      return OtherRows(state, "trajectories with starts",
                       static_cast<int64_t>(order.size()), absl::StrCat(want));
    }
    orders.push_back(std::move(order));
  }

  StopSliding();  // Those that do are cut.
  for (Handle handle = 0; handle < runs_.num_handles(); ++handle) {
    if (runs_.at(handle).rows == 0) continue;
    runs_.at(handle).is_cut = is_cut[handle];
    UpdateSets(handle);
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    if (orders[i].has_value()) sets_[i].Reorder(*orders[i]);
  }
  return absl::OkStatus();
}

}  // namespace rill
