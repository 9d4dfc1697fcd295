// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/tier_map.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {
namespace {

// Both tiers as what step each of their slots holds; -1: none.
class Tiers {
 public:
  Tiers(const Lanes& below, int64_t fast_capacity)
      : lanes(below),
        fast_lanes{below.count, fast_capacity},
        map(below, fast_capacity),
        below_steps_(below.num_slots(), -1),
        cursors_(below.count),
        fast_starts_(below.count, 0) {
    Restart();
  }

  // The effect of a write on the bytes of both tiers.
  void Append(int64_t first, int64_t count, int64_t steps) {
    for (int64_t lane = first; lane < first + count; ++lane) {
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t step = cursors_[lane].written++;
        below_steps_[lanes.SlotOf(lane, step % lanes.capacity)] = step;
        fast_steps_[fast_lanes.SlotOf(
            lane, (step - fast_starts_[lane]) % fast_lanes.capacity)] = step;
      }
    }
  }
  void Restart() {
    map.Forget();
    EXPECT_EQ(Check(), 0);
    fast_steps_.assign(fast_lanes.num_slots(), -1);
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      fast_starts_[lane] = cursors_[lane].written;
    }
    map.Restart(cursors_);
  }

  int64_t BelowAt(Slot slot) const { return below_steps_[slot]; }
  int64_t FastAt(Slot slot) const { return fast_steps_[slot]; }

  // Every slot is a hit or missing, and hits are the same row in both tiers.
  // Returns how many there are.
  int64_t Check() {
    std::vector<Slot> slots = {-1, lanes.num_slots(), INT64_MIN, INT64_MAX};
    for (Slot slot = 0; slot < lanes.num_slots(); ++slot) slots.push_back(slot);
    TierMap::Split& split = split_;  // With what it held before.
    map.SplitRead(slots, &split);
    EXPECT_EQ(split.hits.size() + split.missing.size(), slots.size());
    EXPECT_EQ(split.fast_slots.size(), slots.size());
    for (const TierMap::Split::Hit& hit : split.hits) {
      EXPECT_EQ(slots[hit.place], hit.slot);
      EXPECT_EQ(BelowAt(hit.slot), hit.step);
      EXPECT_EQ(FastAt(split.fast_slots[hit.place]), hit.step);
    }
    for (size_t i = 0; i < split.missing.size(); ++i) {
      EXPECT_EQ(slots[split.missing[i]], split.missing_slots[i]);
      if (split.hits.empty()) continue;
      EXPECT_NE(FastAt(split.fast_slots[split.missing[i]]), -1);
    }
    return static_cast<int64_t>(split.hits.size());
  }

  // Rows that the fast tier was given since it started anew and still has.
  int64_t InFast() const {
    return fast_lanes.num_slots() -
           std::count(fast_steps_.begin(), fast_steps_.end(), -1);
  }

  const Lanes lanes;
  const Lanes fast_lanes;
  TierMap map;

 private:
  std::vector<int64_t> below_steps_;
  std::vector<int64_t> fast_steps_;
  std::vector<Cursor> cursors_;
  std::vector<int64_t> fast_starts_;
  TierMap::Split split_;
};

TEST(TierMapTest, HitsAreTheSameRowInBothTiersWhateverWasWritten) {
  const Rng rng(21);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Lanes lanes = {1 + rng.UniformInt(seed, 0, 3),
                         1 + rng.UniformInt(seed, 1, 9)};
    Tiers tiers(lanes, 1 + rng.UniformInt(seed, 2, lanes.capacity));
    EXPECT_EQ(tiers.Check(), 0);
    for (uint32_t i = 10; i < 250; i += 4) {
      const int64_t first = rng.UniformInt(seed, i, lanes.count);
      const int64_t count =
          1 + rng.UniformInt(seed, i + 1, lanes.count - first);
      const int64_t steps =
          1 + rng.UniformInt(seed, i + 2, 2 * lanes.capacity + 1);
      switch (rng.UniformInt(seed, i + 3, 8)) {
        case 0:
          tiers.Restart();
          break;
        case 1:
          tiers.map.BeginPatch();
          EXPECT_EQ(tiers.Check(), 0);
          tiers.map.EndPatch();
          break;
        case 2:
          tiers.map.BeginAppend(first, count, steps);
          tiers.Check();
          tiers.map.CancelAppend(first);
          break;
        default:
          tiers.map.BeginAppend(first, count, steps);
          tiers.Check();
          tiers.Append(first, count, steps);
          tiers.Check();  // Written, but not told.
          tiers.map.EndAppend(first, count, steps);
      }
      // All that it has is found.
      ASSERT_EQ(tiers.Check(), tiers.InFast());
    }
  }
}

TEST(TierMapTest, AReaderLearnsOfEveryRowThatWentMeanwhile) {
  const Rng rng(22);
  int64_t lost = 0;
  int64_t kept = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Tiers tiers({2, 7}, 1 + rng.UniformInt(seed, 0, 7));
    const auto append = [&](uint32_t draw) {
      const int64_t steps = 1 + rng.UniformInt(seed, draw, 4);
      tiers.map.BeginAppend(0, 2, steps);
      tiers.Append(0, 2, steps);
      return steps;
    };
    tiers.map.EndAppend(0, 2, append(1));
    tiers.map.EndAppend(0, 2, append(2));
    const Slot slots[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    TierMap::Split split;
    tiers.map.SplitRead(slots, &split);
    bool began_anew = false;
    switch (rng.UniformInt(seed, 3, 4)) {
      case 0:
        append(4);  // In flight.
        break;
      case 1:
        began_anew = true;
        tiers.Restart();
        tiers.map.EndAppend(0, 2, append(4));
        break;
      case 2:
        tiers.map.BeginPatch();
        tiers.map.EndPatch();
        tiers.map.FindLost(&split, /*all=*/false);
        EXPECT_EQ(split.missing.size(), split.hits.size());
        continue;
      default:
        tiers.map.EndAppend(0, 2, append(4));
    }
    tiers.map.FindLost(&split, /*all=*/false);
    ASSERT_EQ(split.missing.size(), split.missing_slots.size());
    lost += static_cast<int64_t>(split.missing.size());
    for (const TierMap::Split::Hit& hit : split.hits) {
      const bool is_lost = std::find(split.missing.begin(), split.missing.end(),
                                     hit.place) != split.missing.end();
      kept += !is_lost;
      EXPECT_EQ(
          is_lost,
          began_anew || tiers.FastAt(split.fast_slots[hit.place]) != hit.step);
    }
    tiers.map.FindLost(&split, /*all=*/true);
    EXPECT_EQ(split.missing.size(), split.hits.size());
  }
  EXPECT_GT(lost, 100);
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace rill::storage_internal
