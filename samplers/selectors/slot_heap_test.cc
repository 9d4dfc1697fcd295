// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_heap.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {
namespace {

TEST(SlotHeapTest, AgreesWithASortedSet) {
  constexpr int64_t kSlots = 60;
  const Rng rng(11);
  SlotHeap heap;
  heap.Reset(kSlots);
  std::map<Slot, double> keys;
  for (uint64_t step = 0; step < 5000; ++step) {
    const Slot slot = rng.UniformInt(step, 0, kSlots);
    const int64_t operation = rng.UniformInt(step, 1, 1000);
    if (operation == 0) {
      heap.Clear();
      keys.clear();
    } else if (operation < 350) {
      heap.Remove(slot);
      keys.erase(slot);
    } else {
      // Few keys, so that there are equal ones.
      const double key = static_cast<double>(rng.UniformInt(step, 2, 20)) - 10;
      heap.Put(slot, key);
      keys[slot] = key;
    }
    ASSERT_EQ(heap.size(), static_cast<int64_t>(keys.size()));
    ASSERT_EQ(heap.Contains(slot), keys.contains(slot));
    std::set<std::pair<double, Slot>> sorted;
    for (const auto& [member, key] : keys) sorted.insert({key, member});
    std::vector<Slot> want;
    for (const auto& [key, member] : sorted) want.push_back(member);
    const int64_t count = rng.UniformInt(step, 3, kSlots + 5);
    if (static_cast<int64_t>(want.size()) > count) want.resize(count);
    std::vector<Slot> first;
    heap.First(count, &first);
    ASSERT_EQ(first, want) << "step " << step;
  }
}

}  // namespace
}  // namespace rill::samplers_internal
