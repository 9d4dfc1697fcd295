// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/row_priorities.h"

#include <algorithm>

namespace rill::samplers_internal {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

RowPriorities::RowPriorities(const Lanes& lanes, bool zero_counts)
    : places_(lanes), smallest_(zero_counts ? kOn : kOn + 1) {
  int64_t nodes = std::max<int64_t>(CeilDiv(lanes.num_slots(), kGroup), 1);
  // Padded to whole nodes: a node's children are always there, and zeros are
  // neutral in both extremes.
  groups_ = ZeroedArray<Group>(CeilDiv(nodes, kFanout) * kFanout);
  while (nodes > 1) {
    nodes = CeilDiv(nodes, kFanout);
    levels_.emplace_back(nodes > 1 ? CeilDiv(nodes, kFanout) * kFanout : 1);
  }
}

void RowPriorities::TurnAllOff() { TurnOff(levels_.size(), 0); }

// Nodes below which no row is on have no memory yet, or nothing to change.
void RowPriorities::TurnOff(size_t level, int64_t node) {
  Extremes& extremes = At(level, node);
  if (extremes.max == 0) return;
  extremes = {};
  if (level == 0) {
    for (uint32_t& word : groups_[node].words) word &= ~kOn;
    return;
  }
  for (int64_t i = node * kFanout; i < (node + 1) * kFanout; ++i) {
    TurnOff(level - 1, i);
  }
}

RowPriorities::Extremes RowPriorities::ExtremesOfGroup(
    const Group& group) const {
  // New rows mostly have the same priority.
  uint32_t differences = 0;
  for (const uint32_t word : group.words) differences |= word ^ group.words[0];
  if (differences == 0) return ExtremesOf(group.words[0]);
  Extremes all = {};
  for (const uint32_t word : group.words) {
    const Extremes one = ExtremesOf(word);
    all.max = std::max(all.max, one.max);
    all.not_min = std::max(all.not_min, one.not_min);
  }
  return all;
}

RowPriorities::Extremes RowPriorities::ExtremesBelow(size_t level,
                                                     int64_t node) const {
  Extremes all = {};
  for (int64_t i = node * kFanout; i < (node + 1) * kFanout; ++i) {
    const Extremes& one = At(level - 1, i);
    all.max = std::max(all.max, one.max);
    all.not_min = std::max(all.not_min, one.not_min);
  }
  return all;
}

// Where one that was the most becomes less, all must be looked at; else there
// are the old ones and the new one to compare.
void RowPriorities::Rise(int64_t group, Extremes before, Extremes after) {
  int64_t node = group;
  for (size_t level = 0; level <= levels_.size(); ++level) {
    Extremes& place = At(level, node);
    const Extremes was = place;
    const bool may_fall =
        (before.max == was.max && after.max < before.max) ||
        (before.not_min == was.not_min && after.not_min < before.not_min);
    if (may_fall) {
      place = level == 0 ? ExtremesOfGroup(groups_[node])
                         : ExtremesBelow(level, node);
    } else {
      place.max = std::max(was.max, after.max);
      place.not_min = std::max(was.not_min, after.not_min);
    }
    // Nodes above see no change. Most changes end here, in the lowest level.
    if (place == was) return;
    before = was;
    after = place;
    node /= kFanout;
  }
}

void RowPriorities::Refresh(int64_t first_group, int64_t last_group) {
  bool has_changed = false;
  const auto store = [&has_changed](Extremes value, Extremes& place) {
    has_changed = has_changed || value != place;
    place = value;
  };
  for (int64_t group = first_group; group <= last_group; ++group) {
    store(ExtremesOfGroup(groups_[group]), groups_[group].extremes);
  }
  // Level by level over the range, so each node above is computed once.
  for (size_t level = 1; level <= levels_.size() && has_changed; ++level) {
    has_changed = false;
    first_group /= kFanout;
    last_group /= kFanout;
    for (int64_t node = first_group; node <= last_group; ++node) {
      store(ExtremesBelow(level, node), At(level, node));
    }
  }
}

std::optional<float> RowPriorities::Min() const {
  const uint32_t not_min = At(levels_.size(), 0).not_min;
  if (not_min == 0) return std::nullopt;
  // The bits of floats >= 0 are in the order of their values, so words are
  // compared as integers. The smallest is kept as its complement, where 0 means
  // "none", as memory of zeros does.
  return std::bit_cast<float>(~not_min & ~kOn);
}

std::optional<float> RowPriorities::Max() const {
  const uint32_t max = At(levels_.size(), 0).max;
  if (max == 0) return std::nullopt;
  return std::bit_cast<float>(max & ~kOn);
}

}  // namespace rill::samplers_internal
