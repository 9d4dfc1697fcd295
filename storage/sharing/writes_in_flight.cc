// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/sharing/writes_in_flight.h"

#include <algorithm>

#include "rill/storage/sharing/epoch_windows.h"

namespace rill::storage_internal {
namespace {

bool ShareLanes(const LaneSteps& a, const LaneSteps& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

// Both sorted and apart.
bool Overlap(absl::Span<const SlotRange> a, absl::Span<const SlotRange> b) {
  while (!a.empty() && !b.empty()) {
    if (a[0].first + a[0].count <= b[0].first) {
      a.remove_prefix(1);
    } else if (b[0].first + b[0].count <= a[0].first) {
      b.remove_prefix(1);
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Span<const SlotRange> WritesInFlight::RowsOf(Write* write) {
  if (!write->is_joined) {
    write->joined.assign(write->ranges.begin(), write->ranges.end());
    for (const Slot slot : write->slots) write->joined.push_back({slot, 1});
    JoinRanges(&write->joined);
    write->is_joined = true;
  }
  return write->joined;
}

bool WritesInFlight::Meets(Write* write) const {
  write->is_joined = false;
  // Rows are sorted here, where a second write is in flight, and only once.
  return std::any_of(writes_.begin(), writes_.end(), [&](Write* other) {
    return Overlap(RowsOf(write), RowsOf(other));
  });
}

void WritesInFlight::Begin(Write* write) {
  // Meets was not called then, and `joined` is of an earlier write.
  if (writes_.empty()) write->is_joined = false;
  writes_.push_back(write);
  if (write->append.steps > 0) appends_.push_back(write->append);
}

bool WritesInFlight::HasEarlier(const Write& write) const {
  for (const Write* other : writes_) {
    if (other == &write) return false;
    if (other->append.steps > 0 && ShareLanes(other->append, write.append)) {
      return true;
    }
  }
  return false;
}

void WritesInFlight::End(Write* write) {
  writes_.erase(std::find(writes_.begin(), writes_.end(), write));
  if (write->append.steps > 0) {
    appends_.erase(std::find(appends_.begin(), appends_.end(), write->append));
  }
}

}  // namespace rill::storage_internal
