// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/trajectory_history.h"

#include <vector>

namespace rill {

TrajectoryHistory::TrajectoryHistory(uint64_t number, int64_t max_capacity)
    : rng_(20240722),
      number_(number),
      told_{.ends = number % 3 != 1, .ids = number % 3 != 0},
      lanes_{.count = Pick(3) + 1, .capacity = Pick(max_capacity) + 1},
      producers_(number % 2 == 0 ? 1 : Pick(4) + 1),
      rarity_(Pick(12) + 2),
      model_(lanes_, told_) {}

void TrajectoryHistory::Step() {
  const int64_t kind = Pick(100);
  if (kind == 0) {
    model_.Clear();
  } else if (kind < 12) {
    BeginInPlace();
  } else if (kind < 25) {
    if (model_.in_place_in_flight() > 0) model_.FinishInPlace();
  } else if (kind < 45) {
    if (model_.appends_in_flight() > 0) model_.FinishAppend();
  } else {
    BeginAppend();
    if (kind < 80) model_.FinishAll();
  }
}

StorageModel::Value TrajectoryHistory::NextValue(int64_t lane) {
  int64_t& id = ids_[{lane, Pick(producers_)}];
  // Without end flags a trajectory ends where its producer takes a new id;
  // seldom it takes one that was there before.
  const bool is_end = Pick(rarity_) == 0;
  const StorageModel::Value value = {.is_end = is_end, .id = id};
  if (is_end && Pick(3) != 0) id = Pick(8) == 0 ? Pick(5) : ++last_id_;
  return value;
}

void TrajectoryHistory::BeginAppend() {
  const int64_t first = Pick(lanes_.count);
  const int64_t count = Pick(lanes_.count - first) + 1;
  const int64_t steps =
      Pick(4) == 0 ? Pick(2 * lanes_.capacity + 2) + 1 : Pick(4) + 1;
  while (model_.IsBlocked(first, count, steps)) model_.FinishAppend();
  model_.BeginAppend(first, std::vector<int64_t>(count, steps),
                     [&](int64_t lane) { return NextValue(lane); });
}

void TrajectoryHistory::BeginInPlace() {
  const std::vector<Slot> live = model_.Live();
  if (live.empty()) return;
  std::vector<Slot> slots;
  std::vector<StorageModel::Value> values;
  for (int64_t i = Pick(4); i >= 0; --i) {
    slots.push_back(live[Pick(static_cast<int64_t>(live.size()))]);
    values.push_back({.is_end = Pick(2) == 0, .id = last_id_ - Pick(4)});
  }
  model_.BeginInPlace(
      slots, values,
      {.ends = told_.ends && Pick(3) != 0, .ids = told_.ids && Pick(3) == 0});
}

}  // namespace rill
