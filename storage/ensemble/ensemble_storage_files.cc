// SPDX-License-Identifier: Apache-2.0
// Operations on all members of an EnsembleStorage at once: observers, Clear,
// Save and Load.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/storage/ensemble/ensemble_storage_state.h"

namespace rill {

using storage_internal::LaneRings;
using storage_internal::LiveRows;
using storage_internal::StoredRows;

namespace {

// A folder beside `directory` that nobody else has.
std::string WorkDirectory(absl::string_view directory) {
  static std::atomic<int64_t> count = 0;
  while (absl::ConsumeSuffix(&directory, "/")) {
  }
  return absl::StrCat(directory, ".members-", getpid(), "-", ++count);
}

}  // namespace

// --- Observers ---------------------------------------------------------------

absl::StatusOr<LiveRows> EnsembleStorage::State::Collect() const {
  LiveRows rows;
  for (size_t i = 0; i < size(); ++i) {
    rows.set_first_slot(FirstSlot(i));
    // Adding an observer is what reports all live rows, with ends and ids.
    RILL_RETURN_IF_ERROR(members[i]->AddObserver(&rows)) << Label(i);
    members[i]->RemoveObserver(&rows);
  }
  if (rows.is_consistent()) return rows;
  return FailedPrecondition(
      "EnsembleStorage: event keys: got members that report other values of "
      "their rows, want the same; give them the same EventKeys");
}

absl::Status EnsembleStorage::State::Retell() {
  const absl::StatusOr<LiveRows> rows = Collect();
  if (!rows.ok()) {
    observers.Break();  // The next write tries again.
    return rows.status();
  }
  observers.Tell(*rows);
  return absl::OkStatus();
}

void EnsembleStorage::State::RetellIfBroken() {
  if (!observers.is_broken()) return;
  absl::MutexLock alone(&alone_mutex);
  if (observers.is_broken()) Retell().IgnoreError();
}

absl::Status EnsembleStorage::AddObserver(WriteObserver* observer) {
  constexpr char kCaller[] = "Storage::AddObserver";
  if (observer == nullptr) {
    return InvalidArgument(kCaller, ": observer: got null, want one");
  }
  State& state = *state_;
  absl::MutexLock alone(&state.alone_mutex);
  if (state.observers.Has(observer)) {
    return FailedPrecondition(
        kCaller, ": observer: got one that was added, want another");
  }
  RILL_ASSIGN_OR_RETURN(const LiveRows rows, state.Collect());
  state.observers.Add(observer, rows);
  return absl::OkStatus();
}

void EnsembleStorage::RemoveObserver(WriteObserver* observer) {
  absl::MutexLock alone(&state_->alone_mutex);
  state_->observers.Remove(observer);
}

// --- Clear -------------------------------------------------------------------

absl::Status EnsembleStorage::Clear() {
  State& state = *state_;
  absl::MutexLock alone(&state.alone_mutex);
  state.observers.Mute();
  for (size_t i = 0; i < state.size(); ++i) {
    const absl::Status status = state.members[i]->Clear();
    if (status.ok()) continue;
    RILL_RETURN_IF_ERROR(state.Retell());
    return state.Explained(i, status);
  }
  state.observers.Clear();
  return absl::OkStatus();
}

// --- Files -------------------------------------------------------------------

absl::Status EnsembleStorage::Save(const std::string& directory) const {
  const State& state = *state_;
  absl::MutexLock alone(&state.alone_mutex);
  RILL_ASSIGN_OR_RETURN(const LiveRows live, state.Collect());
  const Lanes& lanes = state.lanes;
  // A lane may have lost its oldest rows, which its cursor does not tell. The
  // number of rows that were reported does.
  std::vector<int64_t> first_live(static_cast<size_t>(lanes.count));
  std::vector<int64_t> rows_of_lane(first_live.size());
  for (const SlotRange& range : live.ranges()) {
    rows_of_lane[lanes.LaneOf(range.first)] += range.count;
  }
  for (size_t lane = 0; lane < first_live.size(); ++lane) {
    const int64_t written = live.cursors()[lane].written;
    if (rows_of_lane[lane] == std::min(written, lanes.capacity)) continue;
    first_live[lane] = written - rows_of_lane[lane];
  }
  LaneRings rings(lanes);
  rings.Restore(live.cursors(), first_live);
  const auto read =
      [&](absl::Span<const Slot> slots) -> absl::StatusOr<TensorDict> {
    TensorDict rows;
    RILL_RETURN_IF_ERROR(Read(slots, &rows));
    return rows.To(Device::Cpu());
  };
  return storage_internal::SaveStoredRows(directory, rings, spec(), read);
}

// The part of each member as a save of its own, in folders 0, 1, ...
absl::Status EnsembleStorage::State::WriteMemberSaves(
    const StoredRows& stored, const std::string& directory) const {
  RILL_RETURN_IF_ERROR(CreateDirectories(directory));
  for (size_t i = 0; i < size(); ++i) {
    const Lanes& own = members[i]->lanes();
    const auto part = [&](const auto& of_lanes) {
      return of_lanes.empty() ? absl::MakeConstSpan(of_lanes)
                              : absl::MakeConstSpan(of_lanes).subspan(
                                    first_lanes[i], own.count);
    };
    LaneRings rings(own);
    rings.Restore(part(stored.rings.cursors()),
                  part(stored.rings.first_live()));
    const auto read = [&](absl::Span<const Slot> slots) {
      std::vector<Slot> all(slots.begin(), slots.end());
      for (Slot& slot : all) slot += FirstSlot(i);
      return storage_internal::ReadStored(stored, all);
    };
    RILL_RETURN_IF_ERROR(storage_internal::SaveStoredRows(
        JoinPath(directory, absl::StrCat(i)), rings, stored.spec, read));
  }
  return absl::OkStatus();
}

std::string EnsembleStorage::State::ClearMembers() {
  std::string state = "; the storage is empty now";
  for (size_t i = 0; i < size(); ++i) {
    const absl::Status status = members[i]->Clear();
    if (status.ok() || members[i]->size() == 0) continue;
    absl::StrAppend(&state, ", but for ", Label(i),
                    ": it was not cleared: ", status.message());
  }
  return state;
}

absl::Status EnsembleStorage::State::LoadMembers(const std::string& directory) {
  for (size_t i = 0; i < size(); ++i) {
    const std::vector<Cursor> before = members[i]->cursors();
    const absl::Status status =
        members[i]->Load(JoinPath(directory, absl::StrCat(i)));
    if (status.ok()) continue;
    std::string state;
    if (i > 0) {
      // Half of it old and half of it new is nobody's content.
      state = ClearMembers();
    } else if (members[0]->cursors() != before) {
      state = size() == 1 ? "; the storage is empty now"
                          : "; it is empty now, the others are as they were";
    }
    RILL_RETURN_IF_ERROR(Explained(i, status)) << state;
  }
  return absl::OkStatus();
}

absl::Status EnsembleStorage::Load(const std::string& directory,
                                   const StorageLoadOptions& options) {
  State& state = *state_;
  absl::MutexLock alone(&state.alone_mutex);
  RILL_ASSIGN_OR_RETURN(const StoredRows stored,
                        storage_internal::LoadStoredRows(directory, state.lanes,
                                                         spec(), options));
  // Members load from files, each all or nothing, so each gets a save of its
  // own part.
  const std::string work = WorkDirectory(directory);
  RILL_RETURN_IF_ERROR(RemoveAll(work));  // Of a process that was killed.
  absl::Status status = state.WriteMemberSaves(stored, work);
  if (status.ok()) {
    state.observers.Mute();
    status = state.LoadMembers(work);
    status.Update(state.LearnSpec());
    status.Update(state.Retell());
  }
  RemoveAll(work).IgnoreError();
  return status;
}

}  // namespace rill
