// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_PRIORITIES_PRIORITY_KERNELS_H_
#define RILL_DEVICE_PRIORITIES_PRIORITY_KERNELS_H_

#include <bit>
#include <cstdint>

#include "Random123/philox.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/priorities/power.h"
#include "rill/device/priorities/priority_tree.h"

namespace rill::device_internal {

// The kernels of DevicePriorities (device_priorities.h).

// A change of a slot, in what `sets` names.
struct PriorityChange {
  enum : uint32_t {
    kPriority = 1,
    kState = 2,  // Whether it may be drawn: kOn.
    kGeneration = 4,
    kOn = 8,
    // The priority is the largest so far, 1 where there is none; `bits` is one
    // more than the bits of one that is known to be before, or 0.
    kLargest = 16,
  };
  int64_t slot = 0;
  int64_t generation = 0;  // Plus 1; 0 where no row is.
  uint32_t bits = 0;
  uint32_t sets = 0;
};

struct PriorityChangeKernel {
  static constexpr const char* kName = "priority_change";
  using Shared = NoState;
  using Local = NoState;

  PriorityTree tree = {};
  const PriorityChange* changes = nullptr;
  int64_t count = 0;
  int64_t first_number = 0;  // Above those of all writes before.
  // As PriorityNumbers, of the changes; it may take the place of what was.
  int64_t max_ever = 0;
  bool replaces_max_ever = false;

  constexpr int64_t num_phases() const { return tree.num_phases(); }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& /*shared*/,
                     Local& /*local*/) const {
    for (int64_t i = thread.thread; i < count; i += thread.num_threads) {
      const int64_t slot = changes[i].slot;
      const int64_t number = first_number + i;
      if (phase > 0) {
        const int64_t level = phase - 1;
        if (!tree.IsClaimed(level, slot, number)) continue;
        if (level == 0) {
          Change(changes[i]);
        } else {
          tree.SetNode(level, slot >> (3 * level));
        }
      }
      tree.Claim(thread, phase, slot, number);
    }
    if (phase + 1 < num_phases() || thread.thread != 0) return;
    ++tree.numbers->writes;
    if (replaces_max_ever || max_ever > tree.numbers->max_ever) {
      tree.numbers->max_ever = max_ever;
    }
  }
  constexpr void Change(const PriorityChange& change) const {
    uint32_t word = tree.words[change.slot];
    if ((change.sets & PriorityChange::kPriority) != 0) {
      word = (word & PriorityTree::kOn) | PriorityOf(change);
    }
    if ((change.sets & PriorityChange::kState) != 0) {
      word &= ~PriorityTree::kOn;
      if ((change.sets & PriorityChange::kOn) != 0) word |= PriorityTree::kOn;
    }
    if ((change.sets & PriorityChange::kGeneration) != 0) {
      tree.generations[change.slot] = change.generation;
    }
    tree.SetLeaf(change.slot, word);
  }
  constexpr uint32_t PriorityOf(const PriorityChange& change) const {
    if ((change.sets & PriorityChange::kLargest) == 0) return change.bits;
    const int64_t known = change.bits;
    const int64_t largest =
        known > tree.numbers->max_ever ? known : tree.numbers->max_ever;
    return largest == 0 ? BitsOf(1.0f) : static_cast<uint32_t>(largest - 1);
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    tree.VisitMemory(visit);
    visit(changes, count * int64_t{sizeof(PriorityChange)});
  }
};

// Priorities of rows that were drawn. A row that is there no more is passed
// over, and so is a priority that is negative or not finite, which is counted.
struct PriorityUpdateKernel {
  static constexpr const char* kName = "priority_update";
  using Shared = NoState;
  using Local = NoState;

  PriorityTree tree = {};
  const int64_t* slots = nullptr;
  const int64_t* generations = nullptr;
  const float* priorities = nullptr;
  int64_t count = 0;
  int64_t first_number = 0;  // Above those of all writes before.

  static constexpr int64_t kLastNumber = INT64_MAX;

  constexpr int64_t num_phases() const { return tree.num_phases(); }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& /*shared*/,
                     Local& /*local*/) const {
    for (int64_t i = thread.thread; i < count; i += thread.num_threads) {
      const int64_t slot = slots[i];
      const int64_t number = first_number + i;
      if (!tree.Has(slot)) continue;
      if (phase == 0) {
        if (!IsCurrent(i)) continue;
        if (!IsGood(priorities[i])) {
          thread.AtomicAdd(&tree.numbers->num_bad, 1);
          thread.AtomicMax(&tree.numbers->first_bad, kLastNumber - number);
          continue;
        }
        thread.AtomicMax(&tree.numbers->max_ever,
                         int64_t{BitsOf(priorities[i])} + 1);
      } else {
        const int64_t level = phase - 1;
        if (level == 0) NoteBad(i);
        if (!tree.IsClaimed(level, slot, number)) continue;
        if (level == 0) {
          tree.SetLeaf(slot, (tree.words[slot] & PriorityTree::kOn) |
                                 BitsOf(priorities[i]));
        } else {
          tree.SetNode(level, slot >> (3 * level));
        }
      }
      tree.Claim(thread, phase, slot, number);
    }
    if (phase + 1 == num_phases() && thread.thread == 0) {
      ++tree.numbers->writes;
    }
  }
  constexpr bool IsCurrent(int64_t i) const {
    return generations[i] >= 0 &&
           tree.generations[slots[i]] == generations[i] + 1;
  }
  static constexpr bool IsGood(float priority) {
    return priority >= 0 && priority <= 0x1.fffffep127f;
  }
  constexpr void NoteBad(int64_t i) const {
    if (tree.numbers->first_bad != kLastNumber - (first_number + i)) return;
    tree.numbers->bad_slot = slots[i];
    tree.numbers->bad_bits = std::bit_cast<uint32_t>(priorities[i]);
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    tree.VisitMemory(visit);
    visit(slots, count * int64_t{sizeof(int64_t)});
    visit(generations, count * int64_t{sizeof(int64_t)});
    visit(priorities, count * int64_t{sizeof(float)});
  }
};

// Makes one level anew of what is below it, leaves of their words.
struct PriorityLevelKernel {
  static constexpr const char* kName = "priority_level";
  using Shared = NoState;
  using Local = NoState;

  PriorityTree tree = {};
  int64_t level = 0;
  bool turns_off = false;  // No slot may be drawn; of level 0.

  constexpr int64_t num_nodes() const {
    return level == 0
               ? tree.size
               : (tree.layout.offset[level] - tree.layout.offset[level - 1]) /
                     kTreeLine;
  }
  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    const int64_t count = num_nodes();
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      if (level > 0) {
        tree.SetNode(level, i);
        continue;
      }
      const uint32_t word = tree.words[i];
      tree.SetLeaf(i, turns_off ? word & ~PriorityTree::kOn : word);
    }
    if (level + 1 == tree.num_levels() && thread.index() == 0) {
      ++tree.numbers->writes;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    tree.VisitMemory(visit);
  }
};

// Draws, with the numbers of base/rng.h: u is UniformDouble(batch, first_draw +
// i) of the stream. Place i has the target total * u or, stratified,
// total * (i + u) / count. Its importance is (weight / smallest)^-beta.
struct PriorityDrawKernel {
  static constexpr const char* kName = "priority_draw";
  using Shared = NoState;
  using Local = NoState;

  // Before the draws, in memory of the host.
  struct Header {
    double total;
    PriorityNumbers numbers;
  };

  PriorityTree tree = {};
  double beta = 0;
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t first_draw = 0;
  uint64_t batch = 0;
  bool stratified = false;
  Header* header = nullptr;
  int64_t* slots = nullptr;
  float* importances = nullptr;
  int64_t count = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    constexpr double kTwoToMinus53 = 0x1p-53;
    const double total = tree.total();
    const double smallest = tree.SmallestWeight();
    if (thread.index() == 0) {
      header->total = total;
      header->numbers = *tree.numbers;
    }
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      const philox4x32_ctr_t counter = {{first_draw + static_cast<uint32_t>(i),
                                         stream, static_cast<uint32_t>(batch),
                                         static_cast<uint32_t>(batch >> 32)}};
      const philox4x32_key_t key = {
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
      const philox4x32_ctr_t bits = philox4x32_R(10, counter, key);
      const uint64_t low = bits.v[0] | (static_cast<uint64_t>(bits.v[1]) << 32);
      const double u = static_cast<double>(low >> 11) * kTwoToMinus53;
      const double target = total * (stratified ? (static_cast<double>(i) + u) /
                                                      static_cast<double>(count)
                                                : u);
      const int64_t slot = FindLeaf(tree.layout, tree.sums, target);
      slots[i] = slot;
      importances[i] = ImportanceOf(tree.sums[slot] / smallest);
    }
  }
  // Powers may be out of order by their last bit. Nor may one become 0, which
  // would take the row out of the loss.
  constexpr float ImportanceOf(double ratio) const {
    const auto importance = static_cast<float>(Power(ratio, -beta));
    constexpr float kMin = 0x1p-126f;
    return importance < kMin ? kMin : importance > 1 ? 1 : importance;
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    tree.VisitMemory(visit);
    visit(header, int64_t{sizeof(Header)});
    visit(slots, count * int64_t{sizeof(int64_t)});
    visit(importances, count * int64_t{sizeof(float)});
  }
};

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_PRIORITIES_PRIORITY_KERNELS_H_
