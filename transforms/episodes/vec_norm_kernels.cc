// SPDX-License-Identifier: Apache-2.0
// Columns are independent, and each column's rows are added in order, one by
// one. So the order of additions does not depend on the width of the vectors.
#include "rill/transforms/episodes/vec_norm_kernels.h"

#include <cstddef>
#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/transforms/episodes/vec_norm_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::transforms_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32Of64 = hn::Rebind<float, F64>;
using VF64 = hn::Vec<F64>;

// A whole vector, or its first `n` elements.
template <bool kIsWhole>
struct Access {
  size_t n = 0;

  VF64 Load(const double* p) const {
    if constexpr (kIsWhole) {
      return hn::LoadU(F64(), p);
    } else {
      return hn::LoadN(F64(), p, n);
    }
  }
  VF64 Load(const float* p) const {
    if constexpr (kIsWhole) {
      return hn::PromoteTo(F64(), hn::LoadU(F32Of64(), p));
    } else {
      return hn::PromoteTo(F64(), hn::LoadN(F32Of64(), p, n));
    }
  }
  void Store(VF64 x, double* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(x, F64(), p);
    } else {
      hn::StoreN(x, F64(), p, n);
    }
  }
  void Store(VF64 x, float* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(hn::DemoteTo(F32Of64(), x), F32Of64(), p);
    } else {
      hn::StoreN(hn::DemoteTo(F32Of64(), x), F32Of64(), p, n);
    }
  }
};

// One vector of columns over all rows, with its sums in registers.
template <typename A, typename T>
void AddColumns(const A& access, const T* x, int64_t rows, int64_t pitch,
                const double* shift, double* sum, double* squares) {
  const VF64 center = access.Load(shift);
  VF64 first = access.Load(sum);
  VF64 second = access.Load(squares);
  for (int64_t row = 0; row < rows; ++row) {
    const VF64 d = hn::Sub(access.Load(x + row * pitch), center);
    first = hn::Add(first, d);
    second = hn::Add(second, hn::Mul(d, d));
  }
  access.Store(first, sum);
  access.Store(second, squares);
}

// Two vectors at once: an addition waits for the one of the row before, which
// takes several cycles. A second chain of additions fills them.
template <typename T>
void AddTwoVectors(const T* x, int64_t rows, int64_t pitch, const double* shift,
                   double* sum, double* squares) {
  const Access<true> access;
  const size_t n = hn::Lanes(F64());
  const VF64 center_a = access.Load(shift);
  const VF64 center_b = access.Load(shift + n);
  VF64 first_a = access.Load(sum);
  VF64 first_b = access.Load(sum + n);
  VF64 second_a = access.Load(squares);
  VF64 second_b = access.Load(squares + n);
  for (int64_t row = 0; row < rows; ++row) {
    const T* const at = x + row * pitch;
    const VF64 a = hn::Sub(access.Load(at), center_a);
    const VF64 b = hn::Sub(access.Load(at + n), center_b);
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
  int64_t c = 0;
  for (; c + width <= columns; c += width) body(Access<true>(), c);
  if (c < columns) body(Access<false>{static_cast<size_t>(columns - c)}, c);
}

// The merge of Chan, Golub and LeVeque. With the rows' mean at shift + delta:
//
//   own = squares - total * delta;
//   center = shift + rows / (old + rows) * delta;
//   all = decay * before + own + delta^2 * old * rows / (old + rows);
//
// `own` is the rows' squared deviations around their own mean. Rounding may
// make it less than 0, which Max mends.
bool MergeMomentsAll(const MomentNumbers& numbers, int64_t columns,
                     const double* sum, const double* squares,
                     const double* before, double* shift, double* mean,
                     double* after, double* factor) {
  // Divisions by numbers that all columns share are made once.
  const VF64 per_row = hn::Set(F64(), 1 / numbers.rows);
  const VF64 take = hn::Set(F64(), numbers.rows * numbers.per_weight);
  const VF64 between =
      hn::Set(F64(), numbers.old * numbers.rows * numbers.per_weight);
  const VF64 decay = hn::Set(F64(), numbers.decay);
  const VF64 per_weight = hn::Set(F64(), numbers.per_weight);
  const VF64 eps = hn::Set(F64(), numbers.eps);
  bool are_finite = true;
  ForColumns(columns, [&](const auto& access, int64_t c) HWY_ATTR {
    // From the shift to the rows' mean.
    const VF64 total = access.Load(sum + c);
    const VF64 delta = hn::Mul(total, per_row);
    const VF64 own = hn::Max(hn::Zero(F64()), hn::Sub(access.Load(squares + c),
                                                      hn::Mul(total, delta)));
    const VF64 center = hn::Add(access.Load(shift + c), hn::Mul(take, delta));
    const VF64 all =
        hn::Add(hn::Add(hn::Mul(decay, access.Load(before + c)), own),
                hn::Mul(hn::Mul(delta, delta), between));
    are_finite &=
        hn::AllTrue(F64(), hn::And(hn::IsFinite(center), hn::IsFinite(all)));
    access.Store(center, shift + c);
    access.Store(center, mean + c);
    access.Store(all, after + c);
    const VF64 deviation = hn::Sqrt(hn::Mul(all, per_weight));
    access.Store(hn::Div(hn::Set(F64(), 1), hn::Max(eps, deviation)),
                 factor + c);
  });
  return are_finite;
}

// out = (x - shift) * factor. A factor, since a division a value would take
// longer; the result may differ from the quotient in the last bit.
template <typename A, typename T>
void ScaleColumns(const A& access, const T* x, int64_t rows, int64_t pitch,
                  const double* shift, const double* factor, T* out) {
  const VF64 center = access.Load(shift);
  const VF64 by = access.Load(factor);
  for (int64_t row = 0; row < rows; ++row) {
    const VF64 d = hn::Sub(access.Load(x + row * pitch), center);
    access.Store(hn::Mul(d, by), out + row * pitch);
  }
}

// One macro makes the functions of both types, as HWY_EXPORT takes no
// templates.
#define RILL_VEC_NORM_KERNELS(Name, T)                                         \
  void AddMoments##Name(const T* x, int64_t rows, int64_t pitch,               \
                        int64_t columns, const double* shift, double* sum,     \
                        double* squares) {                                     \
    const auto two = static_cast<int64_t>(2 * hn::Lanes(F64()));               \
    int64_t begin = 0;                                                         \
    for (; begin + two <= columns; begin += two) {                             \
      AddTwoVectors(x + begin, rows, pitch, shift + begin, sum + begin,        \
                    squares + begin);                                          \
    }                                                                          \
    x += begin, shift += begin, sum += begin, squares += begin;                \
    ForColumns(columns - begin, [&](const auto& access, int64_t c) HWY_ATTR {  \
      AddColumns(access, x + c, rows, pitch, shift + c, sum + c, squares + c); \
    });                                                                        \
  }                                                                            \
  void ShiftThenScale##Name(const T* x, int64_t rows, int64_t pitch,           \
                            int64_t columns, const double* shift,              \
                            const double* factor, T* out) {                    \
    ForColumns(columns, [&](const auto& access, int64_t c) HWY_ATTR {          \
      ScaleColumns(access, x + c, rows, pitch, shift + c, factor + c,          \
                   out + c);                                                   \
    });                                                                        \
  }

RILL_VEC_NORM_KERNELS(Float, float)
RILL_VEC_NORM_KERNELS(Double, double)
#undef RILL_VEC_NORM_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace rill::transforms_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::transforms_internal {

HWY_EXPORT(MergeMomentsAll);
bool MergeMoments(const MomentNumbers& numbers, int64_t columns,
                  const double* sum, const double* squares,
                  const double* before, double* shift, double* mean,
                  double* after, double* factor) {
  return HWY_DYNAMIC_DISPATCH(MergeMomentsAll)(
      numbers, columns, sum, squares, before, shift, mean, after, factor);
}

#define RILL_VEC_NORM_KERNELS(Name, T)                                      \
  HWY_EXPORT(AddMoments##Name);                                             \
  HWY_EXPORT(ShiftThenScale##Name);                                         \
  void AddMoments(const T* x, int64_t rows, int64_t pitch, int64_t columns, \
                  const double* shift, double* sum, double* squares) {      \
    HWY_DYNAMIC_DISPATCH(AddMoments##Name)                                  \
    (x, rows, pitch, columns, shift, sum, squares);                         \
  }                                                                         \
  void ShiftThenScale(const T* x, int64_t rows, int64_t pitch,              \
                      int64_t columns, const double* shift,                 \
                      const double* factor, T* out) {                       \
    HWY_DYNAMIC_DISPATCH(ShiftThenScale##Name)                              \
    (x, rows, pitch, columns, shift, factor, out);                          \
  }

RILL_VEC_NORM_KERNELS(Float, float)
RILL_VEC_NORM_KERNELS(Double, double)
#undef RILL_VEC_NORM_KERNELS

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
