// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SUM_TREE_SUM_TREE_H_
#define RILL_SAMPLERS_SUM_TREE_SUM_TREE_H_

#include <cstdint>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "rill/samplers/sum_tree/zeroed_array.h"

namespace rill::samplers_internal {

// Weights of slots, and which slot a point of their running sum falls on: what
// draws in proportion to weights need.
//
// Nodes are lines of 8 doubles (64 bytes), the values of 8 children. A node's
// own value is always ((c0+c1)+(c2+c3)) + ((c4+c5)+(c6+c7)), recomputed and
// never accumulated. So the tree is a function of its leaves. Equal leaf bytes
// give equal totals and equal finds on every instruction set, after any
// history. Rounding of the total: below 3 * log8(size) * 2^-53, relative.
//
// Batches go through it level by level, so that the lines of a level are
// fetched from memory together.
//
// Values are >= 0 and finite, and so is their sum; slots are in [0, size()).
// Neither is checked.
//
// Thread-safety: thread-compatible.
// Cost: Set and Find O(log8(size)) a slot, without allocation. For 256 out of
//   1M leaves some 8 us to find and 6 us to set. Address space is 9.2 bytes a
//   slot. Memory is taken only where leaves were set to other than 0 (and
//   cleared lines stay).
//
// Example (SumTreeTest.Example runs it):
//   SumTree tree(100);
//   tree.Set({7, 40}, {1.0, 3.0});        // tree.total() == 4
//   int64_t found[2];
//   tree.Find({0.5, 1.5}, absl::MakeSpan(found));  // 7, 40
class SumTree {
 public:
  // All 0.
  explicit SumTree(int64_t size = 0);

  int64_t size() const { return size_; }
  double total() const { return *levels_.back().values; }
  double Get(int64_t slot) const { return levels_[0].values[slot]; }

  // Where a slot comes twice, the last value counts.
  void Set(absl::Span<const int64_t> slots, absl::Span<const double> values);

  // For each target the slot with
  //   sum of the values before it <= target < that sum plus its own value.
  // A target >= total() finds the last slot of them, one below 0 (or
  // NaN) the first; a slot whose value is 0 is never found. total() > 0.
  void Find(absl::Span<const double> targets, absl::Span<int64_t> slots) const;

 private:
  struct Level {
    double* values;  // One a line of the level below; levels_[0]: the leaves.
    int64_t lines;   // Of 8 values.
  };

  // Has what SetChunk looks at first fetched. Always inlined: g++ leaves out
  // calls of what only prefetches.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(int64_t slot) const {
    __builtin_prefetch(levels_[0].values + slot, /*rw=*/1);
    __builtin_prefetch(levels_[1].values + slot / 8, /*rw=*/1);
  }
  void SetChunk(absl::Span<const int64_t> slots,
                absl::Span<const double> values);

  int64_t size_;
  ZeroedArray<double> memory_;
  std::vector<Level> levels_;  // From the leaves to the total.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SUM_TREE_SUM_TREE_H_
