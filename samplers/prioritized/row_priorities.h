// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_ROW_PRIORITIES_H_
#define RILL_SAMPLERS_PRIORITIZED_ROW_PRIORITIES_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "rill/samplers/sum_tree/zeroed_array.h"
#include "rill/slots/lane_blocks.h"
#include "rill/slots/slot.h"
#include "rill/slots/slot_places.h"

namespace rill::samplers_internal {

// The priority of each row as it was given, whether the row may be drawn (is
// on), and the smallest and largest priority of those that are on. A slot's is
// 0 and off until set.
//
// Extremes of 14 slots, of 8 such groups and so on are kept, and a change goes
// up only as far as they change, which most do not.
//
// Priorities are finite and >= 0, slots in range; neither is checked.
//
// Slots lie as SlotPlaces says, so that a step of many lanes is one stretch.
//
// Thread-safety: thread-compatible.
// Cost: Set and Update O(1) a slot where the extremes stay, else
//   O(log8(slots)), once for all slots of a stretch. 4.7 bytes a slot, of memory
//   only where slots were set.
class RowPriorities {
 public:
  // A row's word: the bits of its priority, which are in the order of
  // priorities, and kOn where it is on.
  static constexpr uint32_t kOn = uint32_t{1} << 31;
  // The word of a row that is off; -0 counts as 0.
  static uint32_t WordOf(float priority) {
    return std::bit_cast<uint32_t>(priority) & ~kOn;
  }
  static float PriorityOf(uint32_t word) {
    return std::bit_cast<float>(word & ~kOn);
  }

  // Min() passes over a priority of 0 unless `zero_counts`.
  explicit RowPriorities(const Lanes& lanes = {}, bool zero_counts = true);

  float Get(Slot slot) const { return PriorityOf(Word(slot)); }
  bool IsOn(Slot slot) const { return (Word(slot) & kOn) != 0; }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(Slot slot) const {
    const int64_t group = places_.Of(slot) / kGroup;
    __builtin_prefetch(&groups_[group], /*rw=*/1);
    if (!levels_.empty()) {
      __builtin_prefetch(&levels_[0][group / kFanout], /*rw=*/1);
    }
  }

  void Set(Slot slot, float priority) {
    const int64_t place = places_.Of(slot);
    Group& group = groups_[place / kGroup];
    uint32_t& word = group.words[place % kGroup];
    const Extremes before = ExtremesOf(word);
    word = (word & kOn) | WordOf(priority);
    const Extremes after = ExtremesOf(word);
    const Extremes& all = group.extremes;
    // Inside of the group's extremes before and after: they stay.
    const bool stays =
        before == after ||
        (before.max < all.max && after.max <= all.max &&
         before.not_min < all.not_min && after.not_min <= all.not_min);
    if (!stays) Rise(place / kGroup, before, after);
  }
  // The word of each row of `slots` becomes change(word, slot, i): the row is
  // the i-th of them. In the order of SlotPlaces::ForEachRun, which says what
  // `known` is.
  template <typename Change>
  void Update(absl::Span<const SlotRange> slots,
              absl::Span<const LaneBlock> known, Change change);
  void TurnAllOff();

  // None where no row is on (and counts).
  std::optional<float> Min() const;
  std::optional<float> Max() const;

  // Calls visit(slot) for each row that is on, in order of places. Cost: O(rows
  // that are on), with some O(slots / 1000).
  template <typename Visit>
  void ForEachOn(Visit visit) const {
    VisitNode(levels_.size(), 0, visit);
  }

 private:
  static constexpr int64_t kGroup = 14;
  static constexpr int64_t kFanout = 8;  // Extremes of one cache line.

  // Both 0 where no row is on, so that memory of zeros says so.
  struct Extremes {
    uint32_t max;      // Word of the largest.
    uint32_t not_min;  // Complement of that of the smallest that counts.
    friend bool operator==(const Extremes&, const Extremes&) = default;
  };

  // One cache line.
  struct Group {
    uint32_t words[kGroup];
    Extremes extremes;
  };
  static_assert(sizeof(Group) == 64);

  uint32_t Word(Slot slot) const {
    const int64_t place = places_.Of(slot);
    return groups_[place / kGroup].words[place % kGroup];
  }
  Extremes ExtremesOf(uint32_t word) const {
    return {.max = word >= kOn ? word : 0,
            .not_min = word >= smallest_ ? ~word : 0};
  }
  // Those of all words of a group / of all nodes below a node.
  Extremes ExtremesOfGroup(const Group& group) const;
  Extremes ExtremesBelow(size_t level, int64_t node) const;
  // Those of the groups for level 0, else of the nodes of levels_[level - 1].
  const Extremes& At(size_t level, int64_t node) const {
    return level == 0 ? groups_[node].extremes : levels_[level - 1][node];
  }
  Extremes& At(size_t level, int64_t node) {
    return level == 0 ? groups_[node].extremes : levels_[level - 1][node];
  }
  // Brings up to date what depends on a word of a group that was one of these
  // and is the other.
  void Rise(int64_t group, Extremes before, Extremes after);
  // The same of these groups, whatever has changed in them.
  void Refresh(int64_t first_group, int64_t last_group);

  template <typename Visit>
  void VisitNode(size_t level, int64_t node, Visit& visit) const {
    if (At(level, node).max == 0) return;
    if (level == 0) {
      for (int64_t i = 0; i < kGroup; ++i) {
        if (groups_[node].words[i] < kOn) continue;
        visit(places_.SlotAt(node * kGroup + i));
      }
      return;
    }
    for (int64_t i = node * kFanout; i < (node + 1) * kFanout; ++i) {
      VisitNode(level - 1, i, visit);
    }
  }

  void TurnOff(size_t level, int64_t node);

  SlotPlaces places_;
  uint32_t smallest_;  // Word of the smallest that counts.
  ZeroedArray<Group> groups_;
  // Whole nodes; the last level has one. None where there is one group.
  std::vector<ZeroedArray<Extremes>> levels_;
};

template <typename Change>
void RowPriorities::Update(absl::Span<const SlotRange> slots,
                           absl::Span<const LaneBlock> known, Change change) {
  places_.ForEachRun(slots, known, [&](const SlotPlaces::Run& run) {
    if (run.count == 0) return;
    uint32_t changes = 0;
    Slot slot = run.slot;
    int64_t row = run.row;
    const int64_t end = run.place + run.count;
    for (int64_t place = run.place; place < end;) {
      Group& group = groups_[place / kGroup];
      int64_t i = place % kGroup;
      const int64_t last = std::min(i + end - place, kGroup);
      place += last - i;
      for (; i < last; ++i, slot += run.slot_step, row += run.row_step) {
        const uint32_t word = change(group.words[i], slot, row);
        changes |= group.words[i] ^ word;
        group.words[i] = word;
      }
    }
    // Extremes once a group, behind all words.
    if (changes != 0) Refresh(run.place / kGroup, (end - 1) / kGroup);
  });
}

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_ROW_PRIORITIES_H_
