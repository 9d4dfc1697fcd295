// SPDX-License-Identifier: Apache-2.0
// The index of trajectories is registered for as long as the walk runs, so it
// costs nothing while nobody iterates. One trajectory is read at a time with
// its rows held at the drawn_rows, so none mixes two moments.
#include "rill/replay/rows/trajectory_walk.h"

#include <cstdint>

#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/storage/event_keys.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {
namespace {

bool IsWanted(const TrajectoryFilter& filter,
              const StoredTrajectory& trajectory) {
  const auto rows = static_cast<int64_t>(trajectory.slots.size());
  if (rows < filter.min_rows || rows > filter.max_rows) return false;
  return !filter.only_whole || (trajectory.is_closed && !trajectory.is_cut);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrajectoryWalk>> TrajectoryWalk::Begin(
    const TrajectoryFilter* filter, Storage* storage, DrawnRows* drawn_rows) {
  const EventKeys& keys = storage->traits().event_keys;
  const TensorDictSpec rows = storage->spec();
  if (!rows.empty() && !keys.is_endless() && !keys.TellTrajectories(rows)) {
    return FailedPrecondition("ReplayBuffer::Iterate: ", keys.WantText());
  }
  auto walk = std::unique_ptr<TrajectoryWalk>(
      new TrajectoryWalk(filter, storage, drawn_rows));
  RILL_RETURN_IF_ERROR(storage->AddObserver(&walk->watch_))
      << "ReplayBuffer::Iterate";
  // Trajectories are known by their newest row, since eviction takes the first
  // ones.
  walk->newest_ = walk->watch_.List();
  return walk;
}

absl::StatusOr<bool> TrajectoryWalk::Next(StoredTrajectory* trajectory) {
  while (next_ < newest_.size()) {
    const Slot newest = newest_[next_];
    RILL_ASSIGN_OR_RETURN(const Found found, Read(newest, trajectory));
    if (found == Found::kChanged) continue;  // Loses a step each time.
    ++next_;
    if (found == Found::kUnwanted) continue;
    watch_.Finish(*trajectory);
    return true;
  }
  return false;
}

absl::StatusOr<TrajectoryWalk::Found> TrajectoryWalk::Read(
    Slot newest, StoredTrajectory* trajectory) {
  SamplePlan plan;
  // The read is held in DrawnRows as a batch is: writes of this buffer wait
  // until the rows are copied.
  drawn_rows_->BeginDraw();
  const bool is_wanted =
      watch_.Find(newest, trajectory) && IsWanted(filter_, *trajectory);
  if (is_wanted) {
    plan.rows = trajectory->slots;
    drawn_rows_->Hold(&plan);
  }
  drawn_rows_->EndDraw();
  if (!is_wanted) return Found::kUnwanted;
  trajectory->rows = TensorDict();
  const absl::Status status = CatchExceptions(
      [&] {
        return filter_.keys.empty()
                   ? storage_->Read(plan.rows, &trajectory->rows)
                   : storage_->ReadLeaves(plan.rows, filter_.keys,
                                          &trajectory->rows);
      },
      "Storage::Read");
  drawn_rows_->Release(&plan);
  // Rows that another buffer on this storage has cleared meanwhile are no
  // error.
  if (!watch_.IsStillThere()) return Found::kChanged;
  RILL_RETURN_IF_ERROR(status);
  return Found::kRead;
}

}  // namespace rill::replay_internal
