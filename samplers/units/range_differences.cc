// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/units/range_differences.h"

#include <algorithm>
#include <cstddef>

namespace rill::samplers_internal {

void Subtract(absl::Span<const SlotRange> ranges,
              absl::Span<const SlotRange> others,
              std::vector<SlotRange>* result) {
  size_t other = 0;
  for (const SlotRange& range : ranges) {
    Slot at = range.first;
    const Slot end = range.first + range.count;
    while (other < others.size() &&
           others[other].first + others[other].count <= at) {
      ++other;
    }
    // From `other` on again: one of them may reach into the next range.
    for (size_t i = other; i < others.size() && others[i].first < end; ++i) {
      if (others[i].first > at) {
        result->push_back({.first = at, .count = others[i].first - at});
      }
      at = others[i].first + others[i].count;
    }
    if (at < end) result->push_back({.first = at, .count = end - at});
  }
}

void SortBySlot(std::vector<SlotRange>* ranges) {
  std::sort(
      ranges->begin(), ranges->end(),
      [](const SlotRange& a, const SlotRange& b) { return a.first < b.first; });
}

}  // namespace rill::samplers_internal
