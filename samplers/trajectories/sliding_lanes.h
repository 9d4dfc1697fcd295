// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_SLIDING_LANES_H_
#define RILL_SAMPLERS_TRAJECTORIES_SLIDING_LANES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill::samplers_internal {

// Lanes that lose as many rows with each write as they get, and change in
// nothing else. The step behind their newest row tells all of it. 64 neighbours
// share that number, so that a write to all of them is one addition.
//
// Thread-safety: thread-compatible.
// Cost: O(1). Memory: 16 bytes for 64 lanes.
class SlidingLanes {
 public:
  static constexpr int64_t kNeighbours = 64;

  // No lane slides.
  void Reset(int64_t num_lanes) {
    groups_.assign(
        static_cast<size_t>((num_lanes + kNeighbours - 1) / kNeighbours),
        Group());
  }

  bool Has(int64_t lane) const {
    return (GroupOf(lane).lanes >> (lane % kNeighbours) & 1) != 0;
  }
  // Which of `lane` and its neighbours slide: bit lane % 64 for a lane.
  uint64_t Neighbours(int64_t lane) const { return GroupOf(lane).lanes; }
  // Behind the newest step of each of those.
  int64_t end(int64_t lane) const { return GroupOf(lane).end; }

  // False, and nothing done, where neighbours slide that end elsewhere.
  bool Insert(int64_t lane, int64_t end) {
    Group& group = GroupOf(lane);
    if (group.lanes != 0 && group.end != end) return false;
    group.end = end;
    group.lanes |= uint64_t{1} << (lane % kNeighbours);
    return true;
  }
  void Erase(int64_t lane) {
    GroupOf(lane).lanes &= ~(uint64_t{1} << (lane % kNeighbours));
  }
  // Moves all of the neighbours that slide.
  void Slide(int64_t lane, int64_t steps) { GroupOf(lane).end += steps; }

  int64_t memory_bytes() const {
    return static_cast<int64_t>(groups_.capacity() * sizeof(Group));
  }

 private:
  struct Group {
    uint64_t lanes = 0;
    int64_t end = 0;
  };

  const Group& GroupOf(int64_t lane) const {
    return groups_[static_cast<uint64_t>(lane) / kNeighbours];
  }
  Group& GroupOf(int64_t lane) {
    return groups_[static_cast<uint64_t>(lane) / kNeighbours];
  }

  std::vector<Group> groups_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_SLIDING_LANES_H_
