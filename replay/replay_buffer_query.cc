// SPDX-License-Identifier: Apache-2.0
// ReplayBuffer's walks over the trajectories that it holds.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/replay_buffer_state.h"
#include "rill/replay/trajectory_watch.h"
#include "rill/slots/sample_plan.h"

namespace rill {
namespace {

bool IsWanted(const TrajectoryFilter& filter,
              const StoredTrajectory& trajectory) {
  const auto rows = static_cast<int64_t>(trajectory.slots.size());
  if (rows < filter.min_rows || rows > filter.max_rows) return false;
  return !filter.only_whole || (trajectory.is_closed && !trajectory.is_cut);
}

}  // namespace

absl::StatusOr<bool> ReplayBuffer::State::ReadTrajectory(
    const TrajectoryFilter& filter, Slot newest,
    replay_internal::TrajectoryWatch* watch, StoredTrajectory* trajectory) {
  for (;;) {
    RILL_ASSIGN_OR_RETURN(
        const bool is_wanted,
        TryToReadTrajectory(filter, newest, watch, trajectory));
    if (!is_wanted) return false;
    if (!watch->IsStillThere()) continue;  // Loses a step each time.
    watch->Finish(*trajectory);
    return true;
  }
}

absl::StatusOr<bool> ReplayBuffer::State::TryToReadTrajectory(
    const TrajectoryFilter& filter, Slot newest,
    replay_internal::TrajectoryWatch* watch, StoredTrajectory* trajectory) {
  absl::ReaderMutexLock pause(&pause_mutex);
  SamplePlan plan;
  // Writes of this buffer that come later wait for the read.
  gate.BeginDraw();
  const bool is_wanted =
      watch->Find(newest, trajectory) && IsWanted(filter, *trajectory);
  if (is_wanted) {
    plan.rows = trajectory->slots;
    gate.Hold(&plan);
  }
  gate.EndDraw();
  if (!is_wanted) return false;
  trajectory->rows = TensorDict();
  const absl::Status status =
      filter.keys.empty()
          ? storage->Read(plan.rows, &trajectory->rows)
          : storage->ReadLeaves(plan.rows, filter.keys, &trajectory->rows);
  gate.Release(&plan);
  // Another buffer on this storage has cleared it.
  if (absl::IsOutOfRange(status)) return false;
  RILL_RETURN_IF_ERROR(status);
  return true;
}

absl::Status ReplayBuffer::Iterate(
    const TrajectoryFilter& filter,
    absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> visit) {
  State& state = *state_;
  replay_internal::TrajectoryWatch watch;
  RILL_RETURN_IF_ERROR(state.storage->AddObserver(&watch))
      << "ReplayBuffer::Iterate";
  const absl::Cleanup remove = [&] { state.storage->RemoveObserver(&watch); };
  StoredTrajectory trajectory;
  for (const Slot newest : watch.List()) {
    RILL_ASSIGN_OR_RETURN(
        const bool is_there,
        state.ReadTrajectory(filter, newest, &watch, &trajectory));
    if (!is_there) continue;
    RILL_ASSIGN_OR_RETURN(const bool goes_on, visit(trajectory));
    if (!goes_on) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StoredTrajectory>> ReplayBuffer::Query(
    const TrajectoryFilter& filter,
    absl::FunctionRef<absl::StatusOr<bool>(const StoredTrajectory&)> where,
    int64_t limit) {
  if (limit < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReplayBuffer::Query: limit: got ", limit, ", want >= 0"));
  }
  std::vector<StoredTrajectory> found;
  if (limit == 0) return found;
  const auto keep =
      [&](const StoredTrajectory& trajectory) -> absl::StatusOr<bool> {
    RILL_ASSIGN_OR_RETURN(const bool is_wanted, where(trajectory));
    if (is_wanted) found.push_back(trajectory);
    return static_cast<int64_t>(found.size()) < limit;
  };
  RILL_RETURN_IF_ERROR(Iterate(filter, keep));
  return found;
}

}  // namespace rill
