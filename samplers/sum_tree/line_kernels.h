// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SUM_TREE_LINE_KERNELS_H_
#define RILL_SAMPLERS_SUM_TREE_LINE_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace rill::samplers_internal {

// A sum tree's operations on lines of 8 doubles, in the widest instructions
// that the processor has. The bits are the same on all of them. `level` is
// 64-byte aligned.
// Thread-safety: thread-compatible.

inline constexpr int64_t kLine = 8;

// parents[line] = ((c0+c1)+(c2+c3)) + ((c4+c5)+(c6+c7)) for each of `lines`.
void SumLines(const double* level, absl::Span<const int64_t> lines,
              double* parents);
// The same for lines 0 .. count - 1.
void SumAllLines(const double* level, int64_t count, double* parents);

// Goes one level down for each target. Let line = nodes[i], and s_k the sum of
// children 0 .. k - 1 of that line. Takes the last child k of those with
// c_k > 0 and s_k <= targets[i]. Then nodes[i] = 8 * line + k and
// targets[i] -= s_k. Fetches the lines nodes[i] of `below`, unless null.
//   s_k: 0, c0, c0+c1, (c0+c1)+c2, h = (c0+c1)+(c2+c3), h+c4, m = h+(c4+c5),
//   m+c6.
// Targets are >= 0, and every line has a child > 0.
void Descend(const double* level, const double* below,
             absl::Span<double> targets, absl::Span<int64_t> nodes);

// Adds up the sums of Descend once, for lines 0 .. count - 1. Sets
// starts[8 line + k] to s_k where child k is > 0, and to infinity where it is
// 0. Worth it for lines that are visited more than once.
void StartsOfLines(const double* level, int64_t count, double* starts);
// Descend, by the starts of the level's lines.
void DescendByStarts(const double* starts, const double* below,
                     absl::Span<double> targets, absl::Span<int64_t> nodes);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SUM_TREE_LINE_KERNELS_H_
