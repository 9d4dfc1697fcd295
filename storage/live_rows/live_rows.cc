// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/live_rows/live_rows.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

// Steps [first, end) of a lane.
struct Window {
  int64_t first = 0;
  int64_t end = 0;
};

Slot SlotOf(const Lanes& lanes, int64_t lane, int64_t step) {
  return lanes.SlotOf(lane, step % lanes.capacity);
}

// A process that was killed may have lost the oldest steps of a lane, which the
// cursor does not tell. The live steps are the newest ones: halves find them.
absl::Status FindFirst(const RowReader& storage, int64_t lane, Window* window) {
  const Lanes& lanes = storage.lanes();
  // A read of no leaves says whether a slot is live, of any kind of storage.
  TensorDict none;
  int64_t end = window->end;
  while (window->first < end) {
    const int64_t middle = window->first + (end - window->first) / 2;
    const absl::Status live =
        storage.ReadLeaves({SlotOf(lanes, lane, middle)}, {}, &none);
    if (live.ok()) {
      end = middle;
    } else if (absl::IsOutOfRange(live)) {
      window->first = middle + 1;
    } else {
      return live;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Window>> LiveWindows(const RowReader& storage) {
  const Lanes& lanes = storage.lanes();
  std::vector<Window> windows;
  int64_t rows = 0;
  for (const Cursor& cursor : storage.cursors()) {
    const int64_t live = std::min(cursor.written, lanes.capacity);
    windows.push_back({cursor.written - live, cursor.written});
    rows += live;
  }
  // Each lane has what its cursor implies; else some lane has lost rows.
  if (rows == storage.size()) return windows;
  for (size_t lane = 0; lane < windows.size(); ++lane) {
    RILL_RETURN_IF_ERROR(
        FindFirst(storage, static_cast<int64_t>(lane), &windows[lane]));
  }
  return windows;
}

absl::StatusOr<int64_t> StepsOfAll(const std::vector<Window>& windows) {
  const auto rows = [&](size_t lane) {
    return windows[lane].end - windows[lane].first;
  };
  for (size_t lane = 1; lane < windows.size(); ++lane) {
    if (rows(lane) == rows(0)) continue;
    return FailedPrecondition("ReadLiveRows: rows of lane ", lane, ": got ",
                              rows(lane), ", want ", rows(0),
                              " as of lane 0; ask for LiveRowsShape::kFlat");
  }
  return windows.empty() ? 0 : rows(0);
}

}  // namespace

absl::StatusOr<TensorDict> ReadLiveRows(const RowReader& storage,
                                        LiveRowsShape shape) {
  const Lanes& lanes = storage.lanes();
  RILL_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                        LiveWindows(storage));
  int64_t steps = 0;
  if (shape == LiveRowsShape::kLanesTime) {
    RILL_ASSIGN_OR_RETURN(steps, StepsOfAll(windows));
  }
  std::vector<Slot> slots;
  for (size_t lane = 0; lane < windows.size(); ++lane) {
    for (int64_t step = windows[lane].first; step < windows[lane].end; ++step) {
      slots.push_back(SlotOf(lanes, static_cast<int64_t>(lane), step));
    }
  }
  TensorDict rows;
  RILL_RETURN_IF_ERROR(storage.Read(slots, &rows));
  if (shape == LiveRowsShape::kFlat) return rows;
  return rows.Reshape({lanes.count, steps});
}

}  // namespace rill
