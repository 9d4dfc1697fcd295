// SPDX-License-Identifier: Apache-2.0
// Saved are the slots of the first rows of the trajectories that are cut, in
// order, and of each set, in its order.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/trajectories/trajectory_index.h"

namespace rill {
namespace {

absl::Status OtherRows(const samplers_internal::StateReader& reader,
                       absl::string_view what, int64_t got,
                       absl::string_view want) {
  return reader.DoesNotFit(
      absl::StrCat(what, ": got ", got, ", want ", want,
                   "; load after the storage has got the rows of the save"));
}

}  // namespace

void TrajectoryIndex::Save(samplers_internal::StateWriter* writer) const {
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
  writer->Int(num_rows());
  writer->Int(num_trajectories());
  writer->Int(static_cast<int64_t>(cut.size()));
  for (const Slot slot : cut) writer->Int(slot);
  writer->Int(static_cast<int64_t>(sets_.size()));
  for (const auto& set : sets_) {
    writer->Int(set.size());
    for (const Handle handle : set.members()) writer->Int(first_slot(handle));
  }
}

absl::StatusOr<std::vector<TrajectoryIndex::Handle>>
TrajectoryIndex::ReadTrajectories(
    samplers_internal::StateReader* reader) const {
  RILL_ASSIGN_OR_RETURN(const int64_t count, reader->Int());
  if (count < 0 || count > num_trajectories()) {
    return OtherRows(*reader, "trajectories", count,
                     absl::StrCat("[0, ", num_trajectories(), "]"));
  }
  std::vector<Handle> handles;
  std::vector<bool> is_named(runs_.num_handles(), false);
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(const Slot slot, reader->Int());
    const std::optional<Place> place = Find(slot);
    if (!place.has_value() || place->offset != 0 ||
        is_named[place->trajectory]) {
      return OtherRows(*reader, "trajectory at slot", slot,
                       "the first slot of another one");
    }
    is_named[place->trajectory] = true;
    handles.push_back(place->trajectory);
  }
  return handles;
}

absl::Status TrajectoryIndex::Skip(samplers_internal::StateReader* reader) {
  RILL_RETURN_IF_ERROR(reader->Int().status());
  RILL_RETURN_IF_ERROR(reader->Int().status());
  RILL_RETURN_IF_ERROR(reader->SkipList());
  RILL_ASSIGN_OR_RETURN(const int64_t num_sets, reader->Int());
  if (num_sets < 0) {
    return reader->Damaged(absl::StrCat("sets: got ", num_sets, ", want >= 0"));
  }
  for (int64_t i = 0; i < num_sets; ++i) {
    RILL_RETURN_IF_ERROR(reader->SkipList());
  }
  return absl::OkStatus();
}

absl::Status TrajectoryIndex::Load(samplers_internal::StateReader* reader) {
  RILL_ASSIGN_OR_RETURN(const int64_t rows, reader->Int());
  RILL_ASSIGN_OR_RETURN(const int64_t trajectories, reader->Int());
  if (rows != num_rows()) {
    return OtherRows(*reader, "rows", rows, absl::StrCat(num_rows()));
  }
  if (trajectories != num_trajectories()) {
    return OtherRows(*reader, "trajectories", trajectories,
                     absl::StrCat(num_trajectories()));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<Handle> cut,
                        ReadTrajectories(reader));
  std::vector<bool> is_cut(runs_.num_handles(), false);
  for (const Handle handle : cut) is_cut[handle] = true;

  RILL_ASSIGN_OR_RETURN(const int64_t num_sets, reader->Int());
  const auto want_sets = static_cast<int64_t>(sets_.size());
  if (num_sets != want_sets) {
    return OtherRows(*reader, "sets", num_sets, absl::StrCat(want_sets));
  }
  // Everything is read and checked before the first change.
  std::vector<std::optional<std::vector<Handle>>> orders;
  for (const StartRule& rule : rules_) {
    RILL_ASSIGN_OR_RETURN(std::vector<Handle> order, ReadTrajectories(reader));
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
      if (reader->HasChanges()) {  // Of a rule with other starts.
        orders.push_back(std::nullopt);
        continue;
      }
      return OtherRows(*reader, "trajectories with starts",
                       static_cast<int64_t>(order.size()), absl::StrCat(want));
    }
    orders.push_back(std::move(order));
  }

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
