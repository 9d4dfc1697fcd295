// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_SUM_TREE_TREE_KERNELS_H_
#define RILL_DEVICE_SUM_TREE_TREE_KERNELS_H_

#include <cstdint>

#include "Random123/philox.h"
#include "rill/device/kernels/kernel.h"

namespace rill::device_internal {

// The kernels of DeviceSumTree (device_sum_tree.h). Sums are those of
// samplers/sum_tree bit for bit.

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

// Sets leaves and sums what is above them, in one block. A write has a number
// for each of its places, and the highest number that reaches a node writes it.
// So no two threads write a node, and of equal slots the last counts.
struct TreeSetKernel {
  static constexpr const char* kName = "sum_tree_set";
  static constexpr int kThreads = 1024;
  using Shared = NoState;
  using Local = NoState;

  TreeLayout layout = {};
  double* values = nullptr;
  int64_t* claims = nullptr;  // One a value.
  int64_t first_number = 0;   // Above those of all writes before.
  const int64_t* slots = nullptr;
  const double* weights = nullptr;
  int64_t count = 0;

  // Phase 0 claims leaves. Phase p makes the nodes of level p - 1 and claims
  // those above.
  constexpr int64_t num_phases() const { return layout.num_levels + 1; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& /*shared*/,
                     Local& /*local*/) const {
    for (int64_t i = thread.thread; i < count; i += thread.num_threads) {
      const int64_t number = first_number + i;
      if (phase == 0) {
        thread.AtomicMax(claims + layout.offset[0] + slots[i], number);
        continue;
      }
      const int64_t level = phase - 1;
      const int64_t node = slots[i] >> (3 * level);
      const int64_t at = layout.offset[level] + node;
      if (claims[at] != number) continue;
      values[at] =
          level == 0
              ? weights[i]
              : Sum(values + layout.offset[level - 1] + kTreeLine * node);
      if (phase < layout.num_levels) {
        thread.AtomicMax(claims + layout.offset[phase] + node / kTreeLine,
                         number);
      }
    }
  }
  static constexpr double Sum(const double* c) {
    return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(values, layout.num_values * int64_t{sizeof(double)});
    visit(claims, layout.num_values * int64_t{sizeof(int64_t)});
    visit(slots, count * int64_t{sizeof(int64_t)});
    visit(weights, count * int64_t{sizeof(double)});
  }
};

// The leaf that `target` falls on, as DeviceSumTree::Find says. The total is
// above 0, so that each line on the way has a child above 0.
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

struct TreeFindKernel {
  static constexpr const char* kName = "sum_tree_find";
  using Shared = NoState;
  using Local = NoState;

  TreeLayout layout = {};
  const double* values = nullptr;
  const double* targets = nullptr;
  int64_t* slots = nullptr;
  int64_t count = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      slots[i] = FindLeaf(layout, values, targets[i]);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(values, layout.num_values * int64_t{sizeof(double)});
    visit(targets, count * int64_t{sizeof(double)});
    visit(slots, count * int64_t{sizeof(int64_t)});
  }
};

// The draws of base/rng.h: u is UniformDouble(batch, first_draw + i) of the
// stream. Place i has the target total * u or, stratified, total * (i + u) /
// count.
struct TreeSampleKernel {
  static constexpr const char* kName = "sum_tree_sample";
  using Shared = NoState;
  using Local = NoState;

  TreeLayout layout = {};
  const double* values = nullptr;
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint32_t first_draw = 0;
  uint64_t batch = 0;
  bool stratified = false;
  int64_t* slots = nullptr;
  double* weights = nullptr;  // Values of the leaves; may be null.
  int64_t count = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    constexpr double kTwoToMinus53 = 0x1p-53;
    const double total = values[layout.offset[layout.num_levels - 1]];
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
      slots[i] = FindLeaf(layout, values, target);
      if (weights != nullptr) weights[i] = values[layout.offset[0] + slots[i]];
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(values, layout.num_values * int64_t{sizeof(double)});
    visit(slots, count * int64_t{sizeof(int64_t)});
    visit(weights, weights == nullptr ? 0 : count * int64_t{sizeof(double)});
  }
};

}  // namespace rill::device_internal

#endif  // RILL_DEVICE_SUM_TREE_TREE_KERNELS_H_
