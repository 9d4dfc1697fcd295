// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_N_STEP_KERNELS_H_
#define RILL_TRANSFORMS_UNITS_N_STEP_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/units/draw_rows.h"

namespace rill::transforms_internal {

// What NStepReturns makes of rows on a device, in place, with the host's bits.
//
// A draw has a group of threads: one, or those of a block. They go through the
// items of a leaf (an item is an element of a row) in ascending order, as many
// at a time as the group has threads: all compute, then all write. So what an
// item reads, at its own place or behind, is the stored value. Rows that pad
// are filled last.
struct NStepKernel {
  static constexpr const char* kName = "n_step";
  static constexpr int kMaxLeaves = 12;
  static constexpr int kThreads = 64;  // Of the group of a draw of many rows.
  using Shared = NoState;
  struct Local {
    int64_t count;
    double sum;
    uint8_t flag;
  };

  enum class Kind : uint8_t { kCounts, kSumFloat, kSumDouble, kFlags };
  struct Leaf {
    Kind kind = Kind::kCounts;
    int64_t width = 1;  // Elements of a row.
    void* own = nullptr;
    const void* behind = nullptr;
  };

  const DrawRows* draws = nullptr;
  int64_t num_draws = 0;
  int64_t num_rows = 0;    // Of the batch.
  int64_t num_behind = 0;  // Rows of the list.
  int64_t max_rows = 0;    // Of a draw, with those that pad.
  bool one_thread_a_draw = true;
  int64_t num_steps = 1;
  double gamma = 1;
  const uint8_t* stops = nullptr;  // Of the batch; null: nothing stops.
  const uint8_t* behind_stops = nullptr;
  int64_t* counts = nullptr;
  float* gammas = nullptr;
  Leaf leaves[kMaxLeaves] = {};
  int64_t num_leaves = 0;

  constexpr KernelGrid grid() const {
    return one_thread_a_draw
               ? KernelGrid{(num_draws + kThreads - 1) / kThreads, kThreads}
               : KernelGrid{num_draws, kThreads};
  }
  constexpr int64_t group() const { return one_thread_a_draw ? 1 : kThreads; }
  // How often a group of threads goes over the items of a leaf.
  constexpr int64_t rounds(const Leaf& leaf) const {
    return (max_rows * leaf.width + group() - 1) / group();
  }
  constexpr int64_t num_phases() const {
    int64_t phases = 0;
    for (int64_t i = 0; i < num_leaves; ++i)
      phases += 2 * rounds(leaves[i]) + 1;
    return phases;
  }

  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& /*shared*/,
                     Local& local) const {
    const int64_t draw = one_thread_a_draw ? thread.index() : thread.block;
    if (draw >= num_draws) return;
    const DrawRows& run = draws[draw];
    const int64_t at = one_thread_a_draw ? 0 : thread.thread;
    int64_t i = 0;
    while (phase > 2 * rounds(leaves[i])) phase -= 2 * rounds(leaves[i++]) + 1;
    const Leaf& leaf = leaves[i];
    if (phase == 2 * rounds(leaf)) return Pad(run, leaf, at);
    const int64_t item = phase / 2 * group() + at;
    if (item >= run.num_real() * leaf.width) return;
    const int64_t position = item / leaf.width;
    if (phase % 2 == 0) {
      Compute(run, leaf, position, item % leaf.width, local);
    } else {
      Write(run, leaf, position, item % leaf.width, local);
    }
  }

  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(draws, num_draws * static_cast<int64_t>(sizeof(DrawRows)));
    visit(stops, stops == nullptr ? 0 : num_rows);
    visit(behind_stops, behind_stops == nullptr ? 0 : num_behind);
    visit(counts, num_rows * static_cast<int64_t>(sizeof(int64_t)));
    visit(gammas, num_rows * static_cast<int64_t>(sizeof(float)));
    for (int64_t i = 0; i < num_leaves; ++i) {
      Leaf& leaf = leaves[i];
      if (leaf.kind == Kind::kCounts) continue;
      const int64_t size = leaf.kind == Kind::kSumFloat    ? sizeof(float)
                           : leaf.kind == Kind::kSumDouble ? sizeof(double)
                                                           : 1;
      visit(leaf.own, num_rows * leaf.width * size);
      visit(leaf.behind, num_behind * leaf.width * size);
    }
  }

 private:
  // A window ends with its draw's run, which the unit has cut at the
  // trajectory's end, or behind the first step that stops.
  constexpr int64_t Count(const DrawRows& run, int64_t position) const {
    const int64_t left = run.num_positions() - position;
    const int64_t most = num_steps < left ? num_steps : left;
    int64_t count = 1;
    while (count < most &&
           (stops == nullptr ||
            *run.At(position + count - 1, stops, behind_stops, 1) == 0)) {
      ++count;
    }
    return count;
  }
  // By repeated products, which are the same on every machine.
  constexpr double Power(int64_t steps) const {
    double power = 1;
    for (int64_t i = 0; i < steps; ++i) power *= gamma;
    return power;
  }
  template <typename T>
  constexpr double Sum(const DrawRows& run, const Leaf& leaf, int64_t position,
                       int64_t element) const {
    const T* const own = static_cast<const T*>(leaf.own);
    const T* const behind = static_cast<const T*>(leaf.behind);
    const int64_t count = counts[run.first + position];
    double sum =
        static_cast<double>(run.At(position, own, behind, leaf.width)[element]);
    double power = 1;
    for (int64_t k = 1; k < count; ++k) {
      power *= gamma;
      sum += static_cast<double>(static_cast<T>(power)) *
             static_cast<double>(
                 run.At(position + k, own, behind, leaf.width)[element]);
    }
    return sum;
  }
  constexpr void Compute(const DrawRows& run, const Leaf& leaf,
                         int64_t position, int64_t element,
                         Local& local) const {
    switch (leaf.kind) {
      case Kind::kCounts:
        local.count = Count(run, position);
        return;
      case Kind::kSumFloat:
        local.sum = Sum<float>(run, leaf, position, element);
        return;
      case Kind::kSumDouble:
        local.sum = Sum<double>(run, leaf, position, element);
        return;
      case Kind::kFlags:
        local.flag =
            *run.At(position + counts[run.first + position] - 1,
                    static_cast<const uint8_t*>(leaf.own),
                    static_cast<const uint8_t*>(leaf.behind), int64_t{1});
        return;
    }
  }
  constexpr void Write(const DrawRows& run, const Leaf& leaf, int64_t position,
                       int64_t element, const Local& local) const {
    const int64_t row = run.first + position;
    switch (leaf.kind) {
      case Kind::kCounts:
        counts[row] = local.count;
        gammas[row] = static_cast<float>(Power(local.count));
        return;
      case Kind::kSumFloat:
        static_cast<float*>(leaf.own)[row * leaf.width + element] =
            static_cast<float>(local.sum);
        return;
      case Kind::kSumDouble:
        static_cast<double*>(leaf.own)[row * leaf.width + element] = local.sum;
        return;
      case Kind::kFlags:
        static_cast<uint8_t*>(leaf.own)[row] = local.flag;
        return;
    }
  }
  // Rows that pad take the values of the row that they repeat.
  constexpr void Pad(const DrawRows& run, const Leaf& leaf, int64_t at) const {
    const int64_t items = (run.end - run.begin) * leaf.width;
    for (int64_t item = at; item < items; item += group()) {
      const int64_t row = run.begin + item / leaf.width;
      const int64_t from = run.first + run.PositionOf(row);
      if (from == row) continue;
      const int64_t element = item % leaf.width;
      switch (leaf.kind) {
        case Kind::kCounts:
          counts[row] = counts[from];
          gammas[row] = gammas[from];
          break;
        case Kind::kSumFloat:
          PadItem(static_cast<float*>(leaf.own), leaf, row, from, element);
          break;
        case Kind::kSumDouble:
          PadItem(static_cast<double*>(leaf.own), leaf, row, from, element);
          break;
        case Kind::kFlags:
          PadItem(static_cast<uint8_t*>(leaf.own), leaf, row, from, element);
          break;
      }
    }
  }
  template <typename T>
  static constexpr void PadItem(T* values, const Leaf& leaf, int64_t row,
                                int64_t from, int64_t element) {
    values[row * leaf.width + element] = values[from * leaf.width + element];
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_N_STEP_KERNELS_H_
