// SPDX-License-Identifier: Apache-2.0
// A call makes two passes over its rows: one adds moments around the mean so
// far and merges them into the statistics, the other normalises by the result.
// Both go over blocks of at most kColumns columns, whose numbers stay on the
// stack, and over all rows of a block.
//
// Columns are independent, and each column's rows are added in order, one by
// one. Narrow rows fill no vector. Then 2^bits rows are taken as one row of as
// many columns (a group), each with sums of its own, which are added up at the
// end. Groups do not depend on the processor's vectors, so the order of
// additions is the same everywhere.
#include "rill/transforms/statistics/vec_norm_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/transforms/statistics/vec_norm_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::transforms_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Columns that are worked on at once. Rows of up to kNarrow elements are looked
// at in groups of a multiple of 2^kGroupBits elements, so that vectors are
// full. A group of the widest of them has kNarrow << kGroupBits elements, which
// is kColumns.
constexpr int64_t kColumns = 512;
constexpr int64_t kNarrow = 64;
constexpr int kGroupBits = 3;
constexpr int kScaleBits = 2;

using F64 = hn::ScalableTag<double>;
// For the last columns, and for narrow rows. A load of the widest vector would
// wait until the stores of narrower ones, from which it reads, have reached the
// cache.
using Four = hn::CappedTag<double, 4>;

// A whole vector of D, or its first `n` elements.
template <typename D, bool kIsWhole>
struct Access {
  using Vector = hn::Vec<D>;
  using F32 = hn::Rebind<float, D>;
  size_t n = 0;

  Vector Load(const double* p) const {
    if constexpr (kIsWhole) {
      return hn::LoadU(D(), p);
    } else {
      return hn::LoadN(D(), p, n);
    }
  }
  Vector Load(const float* p) const {
    if constexpr (kIsWhole) {
      return hn::PromoteTo(D(), hn::LoadU(F32(), p));
    } else {
      return hn::PromoteTo(D(), hn::LoadN(F32(), p, n));
    }
  }
  void Store(Vector x, double* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(x, D(), p);
    } else {
      hn::StoreN(x, D(), p, n);
    }
  }
  void Store(Vector x, float* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(hn::DemoteTo(F32(), x), F32(), p);
    } else {
      hn::StoreN(hn::DemoteTo(F32(), x), F32(), p, n);
    }
  }
};

// One vector of columns over all rows, with its sums in registers.
template <typename A, typename T>
void AddColumns(const A& access, const T* x, int64_t rows, int64_t pitch,
                const double* shift, double* sum, double* squares) {
  using Vector = typename A::Vector;
  const Vector center = access.Load(shift);
  Vector first = access.Load(sum);
  Vector second = access.Load(squares);
  for (int64_t row = 0; row < rows; ++row) {
    const Vector d = hn::Sub(access.Load(x + row * pitch), center);
    first = hn::Add(first, d);
    second = hn::Add(second, hn::Mul(d, d));
  }
  access.Store(first, sum);
  access.Store(second, squares);
}

// Two vectors at once: an addition waits for the one of the row before, which
// takes several cycles. A second chain of additions fills them.
template <typename D, typename T>
void AddTwoVectors(const T* x, int64_t rows, int64_t pitch, const double* shift,
                   double* sum, double* squares) {
  using Vector = hn::Vec<D>;
  const Access<D, true> access;
  const size_t n = hn::Lanes(D());
  const Vector center_a = access.Load(shift);
  const Vector center_b = access.Load(shift + n);
  Vector first_a = access.Load(sum);
  Vector first_b = access.Load(sum + n);
  Vector second_a = access.Load(squares);
  Vector second_b = access.Load(squares + n);
  for (int64_t row = 0; row < rows; ++row) {
    const T* const at = x + row * pitch;
    const Vector a = hn::Sub(access.Load(at), center_a);
    const Vector b = hn::Sub(access.Load(at + n), center_b);
    first_a = hn::Add(first_a, a);
    first_b = hn::Add(first_b, b);
    second_a = hn::Add(second_a, hn::Mul(a, a));
    second_b = hn::Add(second_b, hn::Mul(b, b));
  }
  access.Store(first_a, sum);
  access.Store(first_b, sum + n);
  access.Store(second_a, squares);
  access.Store(second_b, squares + n);
}

// Calls `body` with the access and place of each vector of the columns.
template <typename Body>
HWY_ATTR void ForColumns(int64_t columns, const Body& body) {
  const auto width = static_cast<int64_t>(hn::Lanes(F64()));
  const auto four = static_cast<int64_t>(hn::Lanes(Four()));
  int64_t c = 0;
  for (; c + width <= columns; c += width) body(Access<F64, true>(), c);
  for (; c + four <= columns; c += four) body(Access<Four, true>(), c);
  if (c < columns)
    body(Access<Four, false>{static_cast<size_t>(columns - c)}, c);
}

// The weights of what was before, after the decay, and of that and the call's
// rows.
// Divisions by numbers that all columns share are made once.
struct Weights {
  explicit Weights(const VecNormCall& call)
      : old(call.frozen ? call.before[0] : call.decay * call.before[0]),
        rows(static_cast<double>(call.rows)),
        all(call.frozen ? old : old + rows),
        per_weight(all > 0 ? 1 / all : 0),
        per_row(1 / rows) {}
  double old;
  double rows;
  double all;
  double per_weight;
  double per_row;
};

template <typename Vector>
struct Moments {
  Vector center;   // The new mean.
  Vector squares;  // Of deviations around it.
};

// The merge of Chan, Golub and LeVeque. With the rows' mean at shift + delta:
//
//   own = squares - total * delta;
//   center = shift + rows / (old + rows) * delta;
//   all = decay * before + own + delta^2 * old * rows / (old + rows);
//
// `own` is the rows' squared deviations around their own mean. Rounding may
// make it less than 0, which Max mends.
template <typename D, typename Vector = hn::Vec<D>>
HWY_INLINE Moments<Vector> Merge(D d, const VecNormCall& call,
                                 const Weights& weights, Vector total,
                                 Vector squares, Vector shift, Vector before) {
  const double take = weights.rows * weights.per_weight;
  const double between = weights.old * weights.rows * weights.per_weight;
  // From the shift to the rows' mean.
  const Vector delta = hn::Mul(total, hn::Set(d, weights.per_row));
  const Vector own =
      hn::Max(hn::Zero(d), hn::Sub(squares, hn::Mul(total, delta)));
  const Vector center = hn::Add(shift, hn::Mul(hn::Set(d, take), delta));
  const Vector all =
      hn::Add(hn::Add(hn::Mul(hn::Set(d, call.decay), before), own),
              hn::Mul(hn::Mul(delta, delta), hn::Set(d, between)));
  return {center, all};
}

template <typename D, typename Vector = hn::Vec<D>>
HWY_INLINE bool AreFinite(D d, const Moments<Vector>& moments) {
  return hn::AllTrue(
      d, hn::And(hn::IsFinite(moments.center), hn::IsFinite(moments.squares)));
}

// Sums of squares that rows may have: a state may come from a file.
template <typename D, typename Vector = hn::Vec<D>>
HWY_INLINE bool AreSquares(D d, Vector squares) {
  return hn::AllTrue(d, hn::Ge(squares, hn::Zero(d)));
}

// 1 / deviation. It takes longest, so the moments are stored before.
template <typename D, typename Vector = hn::Vec<D>>
HWY_INLINE Vector Factor(D d, const VecNormCall& call, const Weights& weights,
                         const Moments<Vector>& moments) {
  const Vector deviation =
      hn::Sqrt(hn::Mul(moments.squares, hn::Set(d, weights.per_weight)));
  return hn::Div(hn::Set(d, 1.0), hn::Max(hn::Set(d, call.eps), deviation));
}

// Afterwards shift[c] is the new mean and factor[c] 1 / deviation. `begin` is
// the first column of the block.
bool MergeMoments(const VecNormCall& call, const Weights& weights,
                  int64_t begin, int64_t columns, const double* sum,
                  const double* squares, double* shift, double* factor) {
  const double* const squares_before = call.before + 1 + call.n + begin;
  double* const mean = call.after + 1 + begin;
  double* const squares_after = mean + call.n;
  bool are_finite = true;
  ForColumns(
      columns, [&]<typename D, bool kIsWhole>(const Access<D, kIsWhole>& access,
                                              int64_t c) HWY_ATTR {
        const D d;
        const auto before = access.Load(squares_before + c);
        const auto merged =
            Merge(d, call, weights, access.Load(sum + c),
                  access.Load(squares + c), access.Load(shift + c), before);
        are_finite &= AreSquares(d, before) && AreFinite(d, merged);
        access.Store(merged.center, shift + c);
        access.Store(merged.center, mean + c);
        access.Store(merged.squares, squares_after + c);
        access.Store(Factor(d, call, weights, merged), factor + c);
      });
  return are_finite;
}

// out = (x - shift) * factor. A factor, since a division a value would take
// longer; the result may differ from the quotient in the last bit.
template <typename A, typename T>
void ScaleColumns(const A& access, const T* x, int64_t rows, int64_t pitch,
                  const double* shift, const double* factor, T* out) {
  using Vector = typename A::Vector;
  const Vector center = access.Load(shift);
  const Vector by = access.Load(factor);
  for (int64_t row = 0; row < rows; ++row) {
    const Vector d = hn::Sub(access.Load(x + row * pitch), center);
    access.Store(hn::Mul(d, by), out + row * pitch);
  }
}

template <typename T>
void AddMoments(const T* x, int64_t rows, int64_t pitch, int64_t columns,
                const double* shift, double* sum, double* squares) {
  const auto width = static_cast<int64_t>(hn::Lanes(F64()));
  const auto four = static_cast<int64_t>(hn::Lanes(Four()));
  int64_t c = 0;
  for (; c + 2 * width <= columns; c += 2 * width) {
    AddTwoVectors<F64>(x + c, rows, pitch, shift + c, sum + c, squares + c);
  }
  for (; c + 2 * four <= columns; c += 2 * four) {
    AddTwoVectors<Four>(x + c, rows, pitch, shift + c, sum + c, squares + c);
  }
  x += c, shift += c, sum += c, squares += c;
  ForColumns(columns - c, [&](const auto& access, int64_t at) HWY_ATTR {
    AddColumns(access, x + at, rows, pitch, shift + at, sum + at, squares + at);
  });
}

// Calls `fn` with begin and size of each run of rows. Runs and not rows, since
// the loops take many rows at once.
template <typename Fn>
HWY_ATTR void ForRuns(const VecNormCall& call, const Fn& fn) {
  if (call.mask.empty()) return fn(0, call.rows);
  const auto lanes = static_cast<int64_t>(call.mask.size());
  for (int64_t lane = call.first; lane < lanes;) {
    int64_t end = lane;
    while (end < lanes && call.mask[static_cast<size_t>(end)] != 0) ++end;
    if (end > lane) fn(lane, end - lane);
    lane = end + 1;
  }
}

// So few that a call of memcpy would take longer. Four are a vector: a load of
// four would wait for stores of one.
template <typename T>
void CopyFew(const T* from, int64_t size, T* to) {
  int64_t i = 0;
  for (; i + 4 <= size; i += 4) std::memcpy(to + i, from + i, 4 * sizeof(T));
  for (; i < size; ++i) to[i] = from[i];
}

// to += from, in the same way.
void AddFew(const double* from, int64_t size, double* to) {
  int64_t i = 0;
  for (; i + 4 <= size; i += 4) {
    double sums[4];
    for (int k = 0; k < 4; ++k) sums[k] = to[i + k] + from[i + k];
    std::memcpy(to + i, sums, sizeof(sums));
  }
  for (; i < size; ++i) to[i] += from[i];
}

// How many rows make a group of a multiple of 2^bits elements, as an exponent.
// Wider rows fill the vectors by themselves.
int GroupBits(int64_t width, int bits) {
  return width > 0 && width <= kNarrow
             ? std::max(0,
                        bits - std::countr_zero(static_cast<uint64_t>(width)))
             : 0;
}

// Some columns of rows of `width` elements.
struct Columns {
  int64_t width = 0;
  int64_t begin = 0;
  int64_t count = 0;
  int group_bits = 0;
  // Rows that make one of the kernels' rows.
  int64_t group() const { return int64_t{1} << group_bits; }

  // Copies numbers of the columns for the further rows of a group.
  void Repeat(double* numbers) const {
    for (int64_t row = 1; row < group(); ++row) {
      CopyFew(numbers + (row - 1) * count, count, numbers + row * count);
    }
  }
  // And adds them up again.
  void Fold(double* numbers) const {
    for (int64_t row = group(); --row > 0;) {
      AddFew(numbers + row * count, count, numbers + (row - 1) * count);
    }
  }
  // Calls `kernel` with the first element, rows, pitch and columns of parts
  // that make up `rows` rows from `row` on.
  template <typename Kernel>
  HWY_ATTR void Split(int64_t row, int64_t rows, const Kernel& kernel) const {
    // The rows that make whole groups, then the rest as rows of their own,
    // which use the first `count` sums only.
    const int64_t groups = rows >> group_bits;
    const int64_t first = row * width + begin;
    const int64_t rest = rows - (groups << group_bits);
    if (groups > 0) {
      kernel(first, groups, width << group_bits, count << group_bits);
    }
    if (rest > 0) kernel(first + (rows - rest) * width, rest, width, count);
  }
};

// The new statistics of the columns; with the means also in `shift`. False
// where one is not finite.
template <typename T>
bool Learn(const VecNormCall& call, const Weights& weights,
           const Columns& columns, const T* in, double* shift, double* factor) {
  double sum[kColumns];
  double squares[kColumns];
  std::fill_n(sum, columns.count << columns.group_bits, 0);
  std::fill_n(squares, columns.count << columns.group_bits, 0);
  // Sums of squares around a number near the mean lose no digits to
  // cancellation. Before the first call that number is the first row.
  if (call.before[0] > 0) {
    CopyFew(call.before + 1 + columns.begin, columns.count, shift);
  } else {
    std::copy_n(in + call.first * columns.width + columns.begin, columns.count,
                shift);
  }
  columns.Repeat(shift);
  ForRuns(call, [&](int64_t begin, int64_t rows) HWY_ATTR {
    columns.Split(
        begin, rows,
        [&](int64_t first, int64_t parts, int64_t pitch, int64_t width)
            HWY_ATTR {
              AddMoments(in + first, parts, pitch, width, shift, sum, squares);
            });
  });
  columns.Fold(sum);
  columns.Fold(squares);
  return MergeMoments(call, weights, columns.begin, columns.count, sum, squares,
                      shift, factor);
}

// Rows of one vector, the i-th of which begins at element at(i). All numbers of
// a call stay in registers: where rows are few, to store and load them takes
// most of the time. The same additions in the same order as in groups of two
// rows. Some rows were seen before, and none is masked.
template <typename T, typename At>
bool NormaliseFour(const VecNormCall& call, const Weights& weights,
                   const At& at, const T* in, T* out) {
  using Vector = hn::Vec<Four>;
  const Access<Four, true> access;
  const Vector shift = access.Load(call.before + 1);
  Vector first_a = hn::Zero(Four());
  Vector first_b = first_a;
  Vector second_a = first_a;
  Vector second_b = first_a;
  int64_t row = 0;
  for (; row + 2 <= call.rows; row += 2) {
    const Vector a = hn::Sub(access.Load(in + at(row)), shift);
    const Vector b = hn::Sub(access.Load(in + at(row + 1)), shift);
    first_a = hn::Add(first_a, a);
    first_b = hn::Add(first_b, b);
    second_a = hn::Add(second_a, hn::Mul(a, a));
    second_b = hn::Add(second_b, hn::Mul(b, b));
  }
  if (row < call.rows) {
    const Vector a = hn::Sub(access.Load(in + at(row)), shift);
    first_a = hn::Add(first_a, a);
    second_a = hn::Add(second_a, hn::Mul(a, a));
  }
  const Vector before = access.Load(call.before + 5);
  const auto merged = Merge(Four(), call, weights, hn::Add(first_a, first_b),
                            hn::Add(second_a, second_b), shift, before);
  if (!AreSquares(Four(), before) || !AreFinite(Four(), merged)) return false;
  call.after[0] = weights.all;
  access.Store(merged.center, call.after + 1);
  access.Store(merged.squares, call.after + 5);
  const Vector factor = Factor(Four(), call, weights, merged);
  const auto scale = [&](int64_t i) HWY_ATTR {
    const Vector d = hn::Sub(access.Load(in + at(i)), merged.center);
    access.Store(hn::Mul(d, factor), out + at(i));
  };
  for (row = 0; row + 4 <= call.rows; row += 4) {
    scale(row);
    scale(row + 1);
    scale(row + 2);
    scale(row + 3);
  }
  for (; row < call.rows; ++row) scale(row);
  return true;
}

// Rows of any width, in blocks of columns.
template <typename T>
bool NormaliseBlocks(const VecNormCall& call, const Weights& weights,
                     const T* in, T* out) {
  if (!call.frozen) call.after[0] = weights.all;
  double shift[kColumns];
  double factor[kColumns];
  Columns columns = {.width = call.n,
                     .group_bits = GroupBits(call.n, kGroupBits)};
  bool is_finite = true;
  for (; columns.begin < columns.width; columns.begin += columns.count) {
    columns.count = std::min(kColumns, columns.width - columns.begin);
    if (call.frozen) {
      // One that has seen nothing leaves the values as they are.
      const bool is_known = weights.old > 0;
      const double* const mean = call.before + 1 + columns.begin;
      for (int64_t c = 0; c < columns.count; ++c) {
        const double variance = weights.per_weight * mean[call.n + c];
        shift[c] = is_known ? mean[c] : 0;
        factor[c] = is_known ? 1 / std::max(call.eps, std::sqrt(variance)) : 1;
      }
    } else {
      is_finite &= Learn(call, weights, columns, in, shift, factor);
      if (!is_finite) continue;  // Rows of this block stay as they are.
    }
    // The merged mean is the new shift; both numbers are spread over a group.
    // It is smaller, since each value is scaled by itself.
    Columns scaled = columns;
    scaled.group_bits = GroupBits(call.n, kScaleBits);
    scaled.Repeat(shift);
    scaled.Repeat(factor);
    ForRuns(call, [&](int64_t begin, int64_t rows) HWY_ATTR {
      scaled.Split(
          begin, rows,
          [&](int64_t first, int64_t parts, int64_t pitch, int64_t width)
              HWY_ATTR {
                ForColumns(width, [&](const auto& access, int64_t c) HWY_ATTR {
                  ScaleColumns(access, in + first + c, parts, pitch, shift + c,
                               factor + c, out + first + c);
                });
              });
    });
  }
  return is_finite;
}

// Calls fn(element, place in the packed rows, size) for parts of rows. Sizes
// are constants, so that a copy is one instruction.
template <typename Fn>
void ForPartsOfLanes(const VecNormCall& call, const Fn& fn) {
  int64_t at = 0;
  for (int64_t i = 0; i < call.rows; ++i) {
    int64_t row = static_cast<int64_t>(call.lanes[i]) * call.n;
    const int64_t end = row + call.n;
    for (; row + 4 <= end; row += 4, at += 4) {
      fn(row, at, std::integral_constant<size_t, 4>());
    }
    for (; row < end; ++row, ++at) {
      fn(row, at, std::integral_constant<size_t, 1>());
    }
  }
}

template <typename T>
bool NormaliseAll(const VecNormCall& call, const T* in, T* out) {
  const Weights weights(call);
  if (call.n == 4 && hn::Lanes(Four()) == 4 && call.before[0] > 0 &&
      call.mask.empty() && !call.frozen) {
    if (call.lanes == nullptr) {
      return NormaliseFour(
          call, weights, [](int64_t row) { return 4 * row; }, in, out);
    }
    return NormaliseFour(
        call, weights,
        [&call](int64_t row) {
          return 4 * static_cast<int64_t>(call.lanes[row]);
        },
        in, out);
  }
  double statistics[1 + 2 * kVecNormRoom];
  VecNormCall apart = call;
  if (call.after == call.before) apart.after = statistics;
  bool is_finite;
  if (call.lanes == nullptr) {
    is_finite = NormaliseBlocks(apart, weights, in, out);
  } else {
    // Few rows here and there, as rows that follow one another.
    T packed[kVecNormRoom];
    ForPartsOfLanes(call, [&](int64_t row, int64_t at, auto size) {
      std::memcpy(packed + at, in + row, size * sizeof(T));
    });
    is_finite = NormaliseBlocks(apart, weights, packed, packed);
    ForPartsOfLanes(call, [&](int64_t row, int64_t at, auto size) {
      std::memcpy(out + row, packed + at, size * sizeof(T));
    });
  }
  if (is_finite && apart.after != call.after && !call.frozen) {
    std::copy_n(statistics, 1 + 2 * call.n, call.after);
  }
  return is_finite;
}

// HWY_EXPORT takes no templates.
bool NormaliseFloat(const VecNormCall& call, const float* in, float* out) {
  return NormaliseAll(call, in, out);
}
bool NormaliseDouble(const VecNormCall& call, const double* in, double* out) {
  return NormaliseAll(call, in, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::transforms_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::transforms_internal {

HWY_EXPORT(NormaliseFloat);
HWY_EXPORT(NormaliseDouble);

bool NormaliseRows(const VecNormCall& call, const float* in, float* out) {
  return HWY_DYNAMIC_DISPATCH(NormaliseFloat)(call, in, out);
}
bool NormaliseRows(const VecNormCall& call, const double* in, double* out) {
  return HWY_DYNAMIC_DISPATCH(NormaliseDouble)(call, in, out);
}

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
