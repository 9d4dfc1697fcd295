// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sum_tree/line_kernels.h"

#include <cstddef>
#include <cstdint>
#include <limits>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/samplers/sum_tree/line_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

// Where half a line is one vector.
#undef RILL_HAS_HALF_LINES_
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_EMU128
#define RILL_HAS_HALF_LINES_ 1
#else
#define RILL_HAS_HALF_LINES_ 0
#endif

HWY_BEFORE_NAMESPACE();
namespace rill::samplers_internal {
namespace HWY_NAMESPACE {

#if RILL_HAS_HALF_LINES_

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::FixedTag<double, 4>;
using DHalf = hn::FixedTag<double, 2>;
using V = hn::Vec<D>;
using VHalf = hn::Vec<DHalf>;

// Children by twos, in an order that needs no moves between 128-bit blocks.
struct Children {
  HWY_INLINE explicit Children(const double* line) {
    const V low = hn::Load(D(), line);
    const V high = hn::Load(D(), line + 4);
    even = hn::InterleaveLower(D(), low, high);  // 0, 4, 2, 6
    odd = hn::InterleaveUpper(D(), low, high);   // 1, 5, 3, 7
    const V pairs = hn::Add(even, odd);          // 01, 45, 23, 67
    low_pairs = hn::LowerHalf(DHalf(), pairs);
    halves = hn::Add(low_pairs, hn::UpperHalf(DHalf(), pairs));  // 03, 47
  }
  V even, odd;
  VHalf low_pairs, halves;
};

// The sums before the children, in the order of `Children`.
struct Starts {
  // The sums of line_kernels.h in the very same order of additions as the plain
  // code below, so that both give the same bits.
  HWY_INLINE explicit Starts(const Children& children) {
    const VHalf base =
        hn::InterleaveLower(DHalf(), hn::Zero(DHalf()), children.halves);
    even = hn::Combine(D(), hn::Add(base, children.low_pairs), base);
    odd = hn::Add(even, children.even);
  }
  V even, odd;
};

HWY_INLINE double LineSum(const double* line) {
  const VHalf halves = Children(line).halves;
  return hn::GetLane(
      hn::Add(halves, hn::InterleaveUpper(DHalf(), halves, halves)));
}

// For each set of children, as bits in the order of `Children` (even, odd), the
// last child of the set.
struct LastChildren {
  constexpr LastChildren() : of() {
    constexpr uint8_t kChildAt[kLine] = {0, 4, 2, 6, 1, 5, 3, 7};
    for (int bits = 0; bits < 256; ++bits) {
      for (int at = 0; at < kLine; ++at) {
        const bool is_in = (bits >> at & 1) != 0;
        if (is_in && kChildAt[at] > of[bits]) of[bits] = kChildAt[at];
      }
    }
  }
  uint8_t of[256];
};
constexpr LastChildren kLast;

// The highest bit of a byte other than 0: without an instruction for it that is
// a slow one.
struct HighestBits {
  constexpr HighestBits() : of() {
    for (int bits = 1; bits < 256; ++bits) {
      of[bits] = static_cast<uint8_t>(bits > 1 ? of[bits / 2] + 1 : 0);
    }
  }
  uint8_t of[256];
};
constexpr HighestBits kHighest;

HWY_INLINE int Bits(hn::Mask<D> mask) {
  uint8_t bits[8];  // Highway wants room for 8, and sets one.
  hn::StoreMaskBits(D(), mask, bits);
  return bits[0];
}

// Takes the last child that fits, without a branch: which one it is is random,
// and a wrong guess costs more than looking at all eight.
HWY_INLINE int64_t Step(const double* line, double* target) {
  const Children children(line);
  const Starts starts(children);
  const V at = hn::Set(D(), *target);
  const V zero = hn::Zero(D());
  const auto even_fits =
      hn::And(hn::Le(starts.even, at), hn::Gt(children.even, zero));
  const auto odd_fits =
      hn::And(hn::Le(starts.odd, at), hn::Gt(children.odd, zero));
  // Sums never fall from child to child: the last one's is the largest.
  const V largest = hn::Max(hn::IfThenElseZero(even_fits, starts.even),
                            hn::IfThenElseZero(odd_fits, starts.odd));
  const VHalf two =
      hn::Max(hn::LowerHalf(DHalf(), largest), hn::UpperHalf(DHalf(), largest));
  const VHalf one = hn::Max(two, hn::InterleaveUpper(DHalf(), two, two));
  *target -= hn::GetLane(one);
  return kLast.of[Bits(even_fits) | Bits(odd_fits) << 4];
}

HWY_INLINE void StoreStarts(const double* line, double* out) {
  const Children children(line);
  const Starts starts(children);
  const V zero = hn::Zero(D());
  // A child of 0 must not be found: no target reaches infinity.
  const V never = hn::Inf(D());
  const V even =
      hn::IfThenElse(hn::Gt(children.even, zero), starts.even, never);
  const V odd = hn::IfThenElse(hn::Gt(children.odd, zero), starts.odd, never);
  hn::Store(hn::InterleaveLower(D(), even, odd), D(), out);      // 0 1 2 3
  hn::Store(hn::InterleaveUpper(D(), even, odd), D(), out + 4);  // 4 5 6 7
}

HWY_INLINE int64_t StepByStarts(const double* starts, double* target) {
  const V at = hn::Set(D(), *target);
  const int bits = Bits(hn::Le(hn::Load(D(), starts), at)) |
                   Bits(hn::Le(hn::Load(D(), starts + 4), at)) << 4;
  const int last = kHighest.of[bits];
  *target -= starts[last];
  return last;
}

#else

HWY_INLINE double LineSum(const double* c) {
  return ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
}

HWY_INLINE void StoreStarts(const double* c, double* starts) {
  const double first = c[0] + c[1];
  const double half = first + (c[2] + c[3]);
  const double most = half + (c[4] + c[5]);
  const double sums[kLine] = {0,    c[0],        first, first + c[2],
                              half, half + c[4], most,  most + c[6]};
  for (int64_t k = 0; k < kLine; ++k) {
    starts[k] = c[k] > 0 ? sums[k] : std::numeric_limits<double>::infinity();
  }
}

HWY_INLINE int64_t StepByStarts(const double* starts, double* target) {
  int64_t last = 0;
  for (int64_t k = 0; k < kLine; ++k) last = starts[k] <= *target ? k : last;
  *target -= starts[last];
  return last;
}

HWY_INLINE int64_t Step(const double* c, double* target) {
  double starts[kLine];
  StoreStarts(c, starts);
  return StepByStarts(starts, target);
}

#endif  // RILL_HAS_HALF_LINES_

void SumLinesImpl(const double* level, absl::Span<const int64_t> lines,
                  double* parents) {
  for (const int64_t line : lines) {
    parents[line] = LineSum(level + line * kLine);
  }
}

void SumAllLinesImpl(const double* level, int64_t count, double* parents) {
  for (int64_t line = 0; line < count; ++line) {
    parents[line] = LineSum(level + line * kLine);
  }
}

void StartsOfLinesImpl(const double* level, int64_t count, double* starts) {
  for (int64_t line = 0; line < count; ++line) {
    StoreStarts(level + line * kLine, starts + line * kLine);
  }
}

void DescendImpl(const double* level, const double* below,
                 absl::Span<double> targets, absl::Span<int64_t> nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t child = Step(level + nodes[i] * kLine, &targets[i]);
    nodes[i] = nodes[i] * kLine + child;
    if (below != nullptr) __builtin_prefetch(below + nodes[i] * kLine);
  }
}

void DescendByStartsImpl(const double* starts, const double* below,
                         absl::Span<double> targets,
                         absl::Span<int64_t> nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t child = StepByStarts(starts + nodes[i] * kLine, &targets[i]);
    nodes[i] = nodes[i] * kLine + child;
    if (below != nullptr) __builtin_prefetch(below + nodes[i] * kLine);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::samplers_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::samplers_internal {

HWY_EXPORT(SumLinesImpl);
HWY_EXPORT(SumAllLinesImpl);
HWY_EXPORT(StartsOfLinesImpl);
HWY_EXPORT(DescendImpl);
HWY_EXPORT(DescendByStartsImpl);

void SumLines(const double* level, absl::Span<const int64_t> lines,
              double* parents) {
  HWY_DYNAMIC_DISPATCH(SumLinesImpl)(level, lines, parents);
}

void SumAllLines(const double* level, int64_t count, double* parents) {
  HWY_DYNAMIC_DISPATCH(SumAllLinesImpl)(level, count, parents);
}

void Descend(const double* level, const double* below,
             absl::Span<double> targets, absl::Span<int64_t> nodes) {
  HWY_DYNAMIC_DISPATCH(DescendImpl)(level, below, targets, nodes);
}

void StartsOfLines(const double* level, int64_t count, double* starts) {
  HWY_DYNAMIC_DISPATCH(StartsOfLinesImpl)(level, count, starts);
}

void DescendByStarts(const double* starts, const double* below,
                     absl::Span<double> targets, absl::Span<int64_t> nodes) {
  HWY_DYNAMIC_DISPATCH(DescendByStartsImpl)(starts, below, targets, nodes);
}

}  // namespace rill::samplers_internal
#endif  // HWY_ONCE
