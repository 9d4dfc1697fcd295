// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_PRIORITIES_PRIORITY_TREE_H_
#define RILL_DEVICE_PRIORITIES_PRIORITY_TREE_H_

#include <bit>
#include <cstdint>

#include "rill/device/priorities/power.h"

// The tree that the kernels of DevicePriorities (device_priorities.h) share.
// Weights and sums are those of samplers/prioritized and samplers/sum_tree bit for bit.

namespace rill::device_internal {

inline constexpr int64_t kTreeLine = 8;  // Children of a node.
inline constexpr int kMaxTreeLevels = 22;

// Where the values of each level lie in one array, from the leaves to the level
// of one line whose first value is the total.
struct TreeLayout {
  int num_levels = 0;
  int64_t offset[kMaxTreeLevels] = {};
  int64_t num_values = 0;  // Of all levels.
};

constexpr TreeLayout TreeLayoutOf(int64_t size) {
  TreeLayout layout;
  const auto lines_for = [](int64_t values) {
    const int64_t lines = (values + kTreeLine - 1) / kTreeLine;
    return lines < 1 ? int64_t{1} : lines;
  };
  const auto add = [&layout](int64_t lines) {
    layout.offset[layout.num_levels++] = layout.num_values;
    layout.num_values += lines * kTreeLine;
  };
  int64_t lines = lines_for(size);
  for (; lines > 1; lines = lines_for(lines)) add(lines);
  add(1);
  add(1);
  return layout;
}

// A float >= 0 (-0 counts as 0) as bits, which are in the order of values.
constexpr uint32_t BitsOf(float priority) {
  return std::bit_cast<uint32_t>(priority) & 0x7FFFFFFF;
}

// Numbers beside the tree, in the device's memory; at first all 0.
struct PriorityNumbers {
  int64_t max_ever = 0;  // The bits of the largest priority so far, plus 1.
  int64_t writes = 0;    // Kernels that have changed priorities.
  int64_t num_bad = 0;
  // The first bad one's number, counted from the largest down, slot and bits.
  int64_t first_bad = 0;
  int64_t bad_slot = 0;
  int64_t bad_bits = 0;
};

// The tree of priorities. A leaf has the word of its slot (the bits of its
// priority, and kOn where it may be drawn) and its weight. A node above has the
// sum of the weights and the complement of the smallest word that counts.
//
// A write has a number for each of its places, and the highest number that
// reaches a node writes it. So no two threads write a node, and of equal slots
// the last counts.
struct PriorityTree {
  static constexpr uint32_t kOn = uint32_t{1} << 31;

  TreeLayout layout = {};
  int64_t size = 0;
  double alpha = 1;
  double epsilon = 0;
  double* sums = nullptr;
  uint32_t* words = nullptr;  // Above the leaves: complements.
  int64_t* claims = nullptr;
  int64_t* generations = nullptr;  // A slot's, plus 1; 0 where no row is.
  PriorityNumbers* numbers = nullptr;

  constexpr int64_t num_levels() const { return layout.num_levels; }
  constexpr double BaseOf(uint32_t word) const {
    return std::bit_cast<float>(word & ~kOn) + epsilon;
  }
  constexpr double WeightOf(uint32_t word) const {
    if (word < kOn) return 0;
    const double base = BaseOf(word);
    return base == 0 ? 0 : Power(base, alpha);
  }
  // 0 where it does not count for the minimum.
  constexpr uint32_t ComplementOf(uint32_t word) const {
    return word >= (epsilon > 0 ? kOn : kOn + 1) ? ~word : 0;
  }

  constexpr bool Has(int64_t slot) const { return slot >= 0 && slot < size; }
  constexpr int64_t At(int64_t level, int64_t slot) const {
    return layout.offset[level] + (slot >> (3 * level));
  }
  constexpr void SetLeaf(int64_t slot, uint32_t word) const {
    words[slot] = word;
    sums[slot] = WeightOf(word);
  }
  // Node `node` of a level above the leaves.
  constexpr void SetNode(int64_t level, int64_t node) const {
    const int64_t below = layout.offset[level - 1] + kTreeLine * node;
    const double* const c = sums + below;
    uint32_t complement = 0;
    for (int64_t i = 0; i < kTreeLine; ++i) {
      const uint32_t one =
          level == 1 ? ComplementOf(words[below + i]) : words[below + i];
      if (one > complement) complement = one;
    }
    sums[layout.offset[level] + node] =
        ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
    words[layout.offset[level] + node] = complement;
  }
  constexpr double total() const { return sums[At(num_levels() - 1, 0)]; }
  constexpr double SmallestWeight() const {
    const uint32_t word = ~words[At(num_levels() - 1, 0)];
    return Power(BaseOf(word), alpha);
  }

  // One block. Phase 0 claims leaves. Phase p makes the nodes of level p - 1
  // and claims those above.
  constexpr int64_t num_phases() const { return num_levels() + 1; }
  template <typename Thread>
  constexpr void Claim(const Thread& thread, int64_t level, int64_t slot,
                       int64_t number) const {
    if (level < num_levels())
      thread.AtomicMax(claims + At(level, slot), number);
  }
  constexpr bool IsClaimed(int64_t level, int64_t slot, int64_t number) const {
    return claims[At(level, slot)] == number;
  }

  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(sums, layout.num_values * int64_t{sizeof(double)});
    visit(words, layout.num_values * int64_t{sizeof(uint32_t)});
    visit(claims, layout.num_values * int64_t{sizeof(int64_t)});
    visit(generations, size * int64_t{sizeof(int64_t)});
    visit(numbers, int64_t{sizeof(PriorityNumbers)});
  }
};

// The slot with
//   sum of the values before it <= target < that sum plus its own value.
// A target >= the total finds the last slot above 0, one below 0 (or NaN) the
// first. Where the total is above 0, each line on the way has a child above 0.
constexpr int64_t FindLeaf(const TreeLayout& layout, const double* values,
                           double target) {
  constexpr double kMaxDouble = 0x1.fffffffffffffp1023;
  // NaN becomes 0.
  double rest = target > 0 ? (target < kMaxDouble ? target : kMaxDouble) : 0;
  int64_t node = 0;
  for (int level = layout.num_levels - 1; level-- > 0;) {
    const double* const c = values + layout.offset[level] + kTreeLine * node;
    const double half = (c[0] + c[1]) + (c[2] + c[3]);
    const double most = half + (c[4] + c[5]);
    const double starts[kTreeLine] = {
        0,    c[0],        c[0] + c[1], (c[0] + c[1]) + c[2],
        half, half + c[4], most,        most + c[6]};
    int64_t child = 0;
    for (int64_t k = 0; k < kTreeLine; ++k) {
      if (c[k] > 0 && starts[k] <= rest) child = k;
    }
    rest -= starts[child];
    node = kTreeLine * node + child;
  }
  return node;
}

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_PRIORITIES_PRIORITY_TREE_H_
