// SPDX-License-Identifier: Apache-2.0
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

// Calls `body` with the access and place of each vector of the columns.
template <typename Body>
HWY_ATTR void ForColumns(int64_t columns, const Body& body) {
  const auto width = static_cast<int64_t>(hn::Lanes(F64()));
  int64_t c = 0;
  for (; c + width <= columns; c += width) body(Access<true>(), c);
  if (c < columns) body(Access<false>{static_cast<size_t>(columns - c)}, c);
}

#define RILL_VEC_NORM_KERNELS(Name, T)                                         \
  void AddMoments##Name(const T* x, int64_t rows, int64_t pitch,               \
                        int64_t columns, const double* shift, double* sum,     \
                        double* squares) {                                     \
    ForColumns(columns, [&](const auto& access, int64_t c) HWY_ATTR {          \
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
