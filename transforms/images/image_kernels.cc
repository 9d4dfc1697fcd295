// SPDX-License-Identifier: Apache-2.0
// Each kernel is compiled for several instruction sets. Products and sums are
// separate operations, without contraction (-ffp-contract=off), and no sum goes
// across lanes. So every processor computes the same bits.
#include "rill/transforms/images/image_kernels.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/transforms/images/image_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rill::transforms_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::Rebind<int32_t, F32>;
using VF32 = hn::Vec<F32>;

int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(F32())); }

// --- Pixels of three channels ------------------------------------------------

// Three vectors of interleaved bytes become three planes, which some
// instruction sets do in few shuffles.
void SplitRgbAll(const uint8_t* in, int64_t pixels, uint8_t* red,
                 uint8_t* green, uint8_t* blue) {
  using U8 = hn::ScalableTag<uint8_t>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(U8()));
  int64_t i = 0;
  for (; i + lanes <= pixels; i += lanes) {
    hn::Vec<U8> r, g, b;
    hn::LoadInterleaved3(U8(), in + 3 * i, r, g, b);
    hn::StoreU(r, U8(), red + i);
    hn::StoreU(g, U8(), green + i);
    hn::StoreU(b, U8(), blue + i);
  }
  for (; i < pixels; ++i) {
    red[i] = in[3 * i];
    green[i] = in[3 * i + 1];
    blue[i] = in[3 * i + 2];
  }
}

// Floats of all lanes, or of the first n; bytes become floats. LoadN touches no
// byte behind the n.
template <bool kIsWhole, typename T>
VF32 LoadFloats(const T* in, size_t n) {
  const hn::Rebind<T, F32> d;
  const auto values = [&]() HWY_ATTR {
    if constexpr (kIsWhole) {
      return hn::LoadU(d, in);
    } else {
      return hn::LoadN(d, in, n);
    }
  }();
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else {
    return hn::ConvertTo(F32(), hn::PromoteTo(I32(), values));
  }
}

// The same back. Bytes are what is before the point; DemoteTo clamps to those.
template <bool kIsWhole, typename T>
void StoreFloats(VF32 floats, size_t n, T* out) {
  const hn::Rebind<T, F32> d;
  const auto values = [&]() HWY_ATTR {
    if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return hn::DemoteTo(d, hn::ConvertTo(I32(), floats));
    }
  }();
  if constexpr (kIsWhole) {
    hn::StoreU(values, d, out);
  } else {
    hn::StoreN(values, d, out, n);
  }
}

// The order of the sums is torch's: (r + g) + b.
VF32 Gray(VF32 red, VF32 green, VF32 blue) {
  const VF32 r = hn::Mul(hn::Set(F32(), 0.2989f), red);
  const VF32 g = hn::Mul(hn::Set(F32(), 0.587f), green);
  const VF32 b = hn::Mul(hn::Set(F32(), 0.114f), blue);
  return hn::Add(hn::Add(r, g), b);
}

template <bool kIsWhole, typename T>
void GrayPart(const T* red, const T* green, const T* blue, size_t n, T* gray) {
  StoreFloats<kIsWhole>(
      Gray(LoadFloats<kIsWhole>(red, n), LoadFloats<kIsWhole>(green, n),
           LoadFloats<kIsWhole>(blue, n)),
      n, gray);
}

template <typename T>
void GrayAll(const T* red, const T* green, const T* blue, int64_t count,
             T* gray) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    GrayPart<true>(red + i, green + i, blue + i, 0, gray + i);
  }
  if (i == count) return;
  GrayPart<false>(red + i, green + i, blue + i, static_cast<size_t>(count - i),
                  gray + i);
}

void GrayFloats(const float* red, const float* green, const float* blue,
                int64_t count, float* gray) {
  GrayAll(red, green, blue, count, gray);
}
void GrayBytes(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
               int64_t count, uint8_t* gray) {
  GrayAll(red, green, blue, count, gray);
}

// --- The larger of two -------------------------------------------------------

template <typename T>
void MaxAll(const T* a, const T* b, int64_t count, T* out) {
  using D = hn::ScalableTag<T>;
  // A NaN in x is kept by IsNaN. A NaN in y is kept since the comparison is
  // false then, which selects y.
  const auto larger = [](hn::Vec<D> x, hn::Vec<D> y) HWY_ATTR {
    if constexpr (std::is_floating_point_v<T>) {
      return hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
    } else {
      return hn::Max(x, y);
    }
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(larger(hn::LoadU(D(), a + i), hn::LoadU(D(), b + i)), D(),
               out + i);
  }
  if (i == count) return;
  const auto rest = static_cast<size_t>(count - i);
  hn::StoreN(larger(hn::LoadN(D(), a + i, rest), hn::LoadN(D(), b + i, rest)),
             D(), out + i, rest);
}

void MaxFloats(const float* a, const float* b, int64_t count, float* out) {
  MaxAll(a, b, count, out);
}
void MaxBytes(const uint8_t* a, const uint8_t* b, int64_t count, uint8_t* out) {
  MaxAll(a, b, count, out);
}

// --- Resizing ----------------------------------------------------------------

// Resizing is separable: each new row is a weighted sum of old rows, then each
// new pixel one of pixels of that row. The first sum is made by vectors along
// the row. In the second the pixels of a sum lie at any place, so vectors go
// across rows instead: four rows are resized at a time. Between the two passes
// they lie side by side, pixel for pixel, and one vector has four pixels of one
// column.
constexpr int64_t kRows = 4;
using F32x4 = hn::FixedTag<float, kRows>;

// Pixels [x, x + lanes) of a new row; `in` is at x of the old rows. Rows
// without weight are not read.
template <bool kIsWhole, typename T>
VF32 SumRows(const T* in, const AxisView& rows, int64_t row, int64_t stride,
             size_t n) {
  const float* const weights = rows.weights + row * rows.taps;
  VF32 sum = hn::Zero(F32());
  in += rows.first[row] * stride;
  for (int64_t k = 0; k < rows.count[row]; ++k, in += stride) {
    sum = hn::Add(
        sum, hn::Mul(hn::Set(F32(), weights[k]), LoadFloats<kIsWhole>(in, n)));
  }
  return sum;
}

// Four new rows, interleaved into the tile: pixel x of row r is at 4 x + r.
template <bool kIsWhole, typename T>
void SumFourRows(const T* in, const AxisView& rows, const int64_t* four,
                 int64_t stride, size_t n, float* tile) {
  hn::StoreInterleaved4(SumRows<kIsWhole>(in, rows, four[0], stride, n),
                        SumRows<kIsWhole>(in, rows, four[1], stride, n),
                        SumRows<kIsWhole>(in, rows, four[2], stride, n),
                        SumRows<kIsWhole>(in, rows, four[3], stride, n), F32(),
                        tile);
}

// The second sum, of all four rows at once.
void SumColumns(const float* tile, const AxisView& columns, float* out) {
  const float* weights = columns.weights;
  for (int64_t i = 0; i < columns.to; ++i, weights += columns.taps) {
    const float* in = tile + columns.first[i] * kRows;
    auto sum = hn::Zero(F32x4());
    for (int64_t k = 0; k < columns.count[i]; ++k) {
      sum = hn::Add(sum, hn::Mul(hn::Set(F32x4(), weights[k]),
                                 hn::LoadU(F32x4(), in + k * kRows)));
    }
    hn::StoreU(sum, F32x4(), out + i * kRows);
  }
}

// Floats go as they are; bytes are rounded half to even first, so that what
// StoreFloats cuts off is nothing.
template <typename T>
void StoreRounded(VF32 pixels, int64_t count, T* out) {
  if constexpr (!std::is_same_v<T, float>) pixels = hn::Round(pixels);
  if (count >= FloatLanes()) {
    StoreFloats<true>(pixels, 0, out);
  } else {
    StoreFloats<false>(pixels, static_cast<size_t>(count), out);
  }
}

// The first `count` of four rows that lie side by side. Loads go past the end
// of the tile, for which the scratch has room.
template <typename T>
void StoreRows(const float* tile, int64_t width, int64_t count, T* out) {
  for (int64_t x = 0; x < width; x += FloatLanes()) {
    VF32 first, second, third, fourth;
    hn::LoadInterleaved4(F32(), tile + x * kRows, first, second, third, fourth);
    StoreRounded(first, width - x, out + x);
    if (count > 1) StoreRounded(second, width - x, out + width + x);
    if (count > 2) StoreRounded(third, width - x, out + 2 * width + x);
    if (count > 3) StoreRounded(fourth, width - x, out + 3 * width + x);
  }
}

// The two tiles in scratch: [columns.from] before and [columns.to] after the
// second sum, each with a vector more that loads and stores may touch.
template <typename T>
void ResizeAll(const T* in, const AxisView& rows, const AxisView& columns,
               float* scratch, T* out) {
  const int64_t lanes = FloatLanes();
  const int64_t width = columns.from;
  float* const before = scratch;
  float* const after = scratch + (width + lanes) * kRows;
  for (int64_t row = 0; row < rows.to; row += kRows) {
    // Fewer than four rows are left: the last one is computed again, and
    // StoreRows drops the copies.
    int64_t four[kRows];
    for (int64_t i = 0; i < kRows; ++i) {
      four[i] = row + i < rows.to ? row + i : rows.to - 1;
    }
    int64_t x = 0;
    for (; x + lanes <= width; x += lanes) {
      SumFourRows<true>(in + x, rows, four, width, 0, before + x * kRows);
    }
    if (x < width) {
      SumFourRows<false>(in + x, rows, four, width,
                         static_cast<size_t>(width - x), before + x * kRows);
    }
    SumColumns(before, columns, after);
    StoreRows(after, columns.to, rows.to - row, out + row * columns.to);
  }
}

void ResizeFloats(const float* in, const AxisView& rows,
                  const AxisView& columns, float* scratch, float* out) {
  ResizeAll(in, rows, columns, scratch, out);
}
void ResizeBytes(const uint8_t* in, const AxisView& rows,
                 const AxisView& columns, float* scratch, uint8_t* out) {
  ResizeAll(in, rows, columns, scratch, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace rill::transforms_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::transforms_internal {

HWY_EXPORT(SplitRgbAll);
HWY_EXPORT(GrayFloats);
HWY_EXPORT(GrayBytes);
HWY_EXPORT(MaxFloats);
HWY_EXPORT(MaxBytes);
HWY_EXPORT(ResizeFloats);
HWY_EXPORT(ResizeBytes);

void SplitRgb(const uint8_t* in, int64_t pixels, uint8_t* red, uint8_t* green,
              uint8_t* blue) {
  HWY_DYNAMIC_DISPATCH(SplitRgbAll)(in, pixels, red, green, blue);
}

void GrayOfRgb(const float* red, const float* green, const float* blue,
               int64_t count, float* gray) {
  HWY_DYNAMIC_DISPATCH(GrayFloats)(red, green, blue, count, gray);
}
void GrayOfRgb(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
               int64_t count, uint8_t* gray) {
  HWY_DYNAMIC_DISPATCH(GrayBytes)(red, green, blue, count, gray);
}

void MaxOfTwo(const float* a, const float* b, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(MaxFloats)(a, b, count, out);
}
void MaxOfTwo(const uint8_t* a, const uint8_t* b, int64_t count, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MaxBytes)(a, b, count, out);
}

int64_t ResizeScratchSize(const AxisView& columns) {
  // Vectors go past the ends of the two tiles, by at most 64 floats for each of
  // the four rows.
  return 4 * (columns.from + columns.to + 2 * 64);
}

void ResizePlane(const float* in, const AxisView& rows, const AxisView& columns,
                 float* scratch, float* out) {
  HWY_DYNAMIC_DISPATCH(ResizeFloats)(in, rows, columns, scratch, out);
}
void ResizePlane(const uint8_t* in, const AxisView& rows,
                 const AxisView& columns, float* scratch, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(ResizeBytes)(in, rows, columns, scratch, out);
}

}  // namespace rill::transforms_internal
#endif  // HWY_ONCE
