// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_EXACT_NORM_KERNELS_H_
#define RILL_TRANSFORMS_STATISTICS_EXACT_NORM_KERNELS_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/statistics/norm_columns.h"
#include "rill/transforms/statistics/vec_norm_digits.h"

// A VecNorm with decay 1 for host and devices (device/kernels/kernel.h).

namespace rill::transforms_internal {

// Before a call learns: sets the fault, of which all leaves of the call have
// one. An element or a state's number a thread.
struct NormCheckKernel {
  static constexpr const char* kName = "norm_check";
  static constexpr int kMostLeaves = 8;
  using Shared = NoState;
  using Local = NoState;

  struct Leaf {
    NormRows rows;
    const int64_t* state = nullptr;
    int64_t end = 0;  // Elements of this leaf and those before it.
  };

  Leaf leaves[kMostLeaves] = {};
  int num_leaves = 0;
  int64_t count = 0;  // Rows of the call.
  int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    const int64_t end = num_leaves == 0 ? 0 : leaves[num_leaves - 1].end;
    int at = 0;
    NormFault found = NormFault::kNone;
    for (int64_t i = thread.index(); i < end; i += thread.grid_size()) {
      while (i >= leaves[at].end) ++at;
      const NormFault here =
          FaultAt(leaves[at], at == 0 ? i : i - leaves[at - 1].end);
      if (here > found) found = here;
    }
    if (found != NormFault::kNone) {
      Thread::AtomicMax(fault, static_cast<int64_t>(found));
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int i = 0; i < num_leaves; ++i) {
      NormRows& rows = leaves[i].rows;
      visit(rows.data, rows.bytes());
      if (rows.mask != nullptr) visit(rows.mask, rows.lanes);
      visit(leaves[i].state, BytesOfState(rows.n));
    }
    visit(fault, int64_t{sizeof(int64_t)});
  }

 private:
  constexpr NormFault FaultAt(const Leaf& leaf, int64_t element) const {
    const NormRows& rows = leaf.rows;
    const int64_t lane = element / rows.n;
    if (lane == 0) {
      if (!IsWindow(leaf.state[1 + element * kVecNormWords])) {
        return NormFault::kUnsound;
      }
      const NormFault fault = FaultOfRows(leaf.state[0], count);
      if (fault != NormFault::kNone) return fault;
    }
    // Also false for NaN.
    return !rows.Counts(lane) || SizeOf(rows.At(element)) <= kMostVecNormValue
               ? NormFault::kNone
               : NormFault::kValue;
  }
};

// Adds the rows to the sums where `after` is given and no fault is set. Then
// sets the rows of `out` to (x - mean) / max(deviation, eps) of the sums. A
// column a block.
struct ExactNormKernel {
  static constexpr const char* kName = "exact_norm";
  static constexpr int kMostLeaves = 8;

  struct Leaf {
    NormRows rows;
    void* out = nullptr;  // May be the rows.
    const int64_t* before = nullptr;
    int64_t* after = nullptr;
    int64_t end = 0;  // Columns of this leaf and those before it.
  };
  struct Shared {
    NormColumn column;
    double mean;
    double factor;
    bool learns;
    bool is_sound;
  };
  using Local = NoState;

  Leaf leaves[kMostLeaves] = {};
  int num_leaves = 0;
  int64_t count = 0;  // Rows of the call.
  double eps = 0;
  const int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 5; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
                     Local& /*local*/) const {
    int at = 0;
    while (thread.block >= leaves[at].end) ++at;
    const Leaf& leaf = leaves[at];
    const int64_t i =
        at == 0 ? thread.block : thread.block - leaves[at - 1].end;
    if (phase == 0) {
      if (thread.thread == 0) Start(leaf, i, shared);
    } else if (phase == 3) {
      if (thread.thread == 0) Finish(leaf, i, shared);
    } else if (phase == 4) {
      Normalise(leaf, i, thread, shared);
    } else if (shared.learns) {
      Learn(phase == 1, leaf, i, thread, shared);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int i = 0; i < num_leaves; ++i) {
      Leaf& leaf = leaves[i];
      visit(leaf.rows.data, leaf.rows.bytes());
      visit(leaf.out, leaf.rows.bytes());
      if (leaf.rows.mask != nullptr) visit(leaf.rows.mask, leaf.rows.lanes);
      visit(leaf.before, BytesOfState(leaf.rows.n));
      if (leaf.after != nullptr) visit(leaf.after, BytesOfState(leaf.rows.n));
    }
    visit(fault, int64_t{sizeof(int64_t)});
  }

 private:
  constexpr void Start(const Leaf& leaf, int64_t i, Shared& shared) const {
    shared.column = NormColumn{};
    shared.is_sound = IsWindow(leaf.before[1 + i * kVecNormWords]) &&
                      FaultOfRows(leaf.before[0], 0) == NormFault::kNone;
    shared.learns = leaf.after != nullptr && *fault == 0;
  }

  template <typename Thread>
  constexpr void Learn(bool seeks_largest, const Leaf& leaf, int64_t i,
                       const Thread& thread, Shared& shared) const {
    const NormRows& rows = leaf.rows;
    VecNormSums sums;
    if (!seeks_largest) {
      sums.window =
          shared.column.WindowFrom(leaf.before[1 + i * kVecNormWords]);
    }
    double largest = 0;
    for (int64_t lane = thread.thread; lane < rows.lanes;
         lane += thread.num_threads) {
      if (!rows.Counts(lane)) continue;
      const double number = rows.At(lane * rows.n + i);
      if (seeks_largest) {
        largest = SizeOf(number) > largest ? SizeOf(number) : largest;
      } else if (rows.is_double) {
        AddNumber<true>(number, &sums);
      } else {
        AddNumber<false>(number, &sums);
      }
    }
    if (!seeks_largest) {
      shared.column.template Add<Thread>(sums);
    } else if (largest > 0) {
      Thread::AtomicMax(&shared.column.largest,
                        std::bit_cast<int64_t>(largest));
    }
  }

  constexpr void Finish(const Leaf& leaf, int64_t i, Shared& shared) const {
    VecNormSums sums = SumsAt(leaf.before, i);
    int64_t rows = leaf.before[0];
    if (shared.learns) {
      shared.column.AddTo(&sums);
      rows += count;
    }
    if (leaf.after != nullptr) {
      SetSumsAt(sums, i, leaf.after);
      if (i == 0) leaf.after[0] = rows;
    }
    shared.mean = 0;
    shared.factor = 1;
    // Statistics of no row leave the values as they are.
    if (!shared.is_sound || rows <= 0) return;
    const VecNormElement element = ElementOf(sums, rows);
    const double variance = 1 / element.weight * element.squares;
    const double deviation = std::sqrt(variance);
    shared.mean = element.mean;
    shared.factor = 1 / (eps < deviation ? deviation : eps);
  }

  template <typename Thread>
  constexpr void Normalise(const Leaf& leaf, int64_t i, const Thread& thread,
                           const Shared& shared) const {
    const NormRows& rows = leaf.rows;
    for (int64_t lane = thread.thread; lane < rows.lanes;
         lane += thread.num_threads) {
      if (!rows.Counts(lane)) continue;
      const int64_t at = lane * rows.n + i;
      const double value = (rows.At(at) - shared.mean) * shared.factor;
      if (rows.is_double) {
        static_cast<double*>(leaf.out)[at] = value;
      } else {
        static_cast<float*>(leaf.out)[at] = static_cast<float>(value);
      }
    }
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_EXACT_NORM_KERNELS_H_
