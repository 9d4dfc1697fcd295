// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/row_transpose.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

// Why squares. Row by row, each write goes to another lane and so to another
// cache line, for 1 to 8 bytes. A square reads whole vectors of neighbouring
// lanes, turns them in registers and writes 16 bytes to each lane.

namespace rill {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A row of kWidth bytes; 0: `width`, known at run time only.
template <int64_t kWidth>
void CopyRow(const std::byte* from, std::byte* to, int64_t width) {
  std::memcpy(to, from, kWidth > 0 ? kWidth : width);
}

// A row of kHalf to 2 * kHalf bytes, as two halves that may overlap.
template <int64_t kHalf>
void CopyHalves(const std::byte* from, std::byte* to, int64_t width) {
  std::byte first[kHalf];
  std::byte last[kHalf];
  std::memcpy(first, from, kHalf);
  std::memcpy(last, from + width - kHalf, kHalf);
  std::memcpy(to, first, kHalf);
  std::memcpy(to + width - kHalf, last, kHalf);
}

using CopyFunction = void (*)(const std::byte*, std::byte*, int64_t);

// `rows` is a copy, which no written byte can change: compilers keep it in
// registers. Steps from `first_step` on of lanes [first_lane, end_lane).
template <CopyFunction kCopy>
void CopyLanes(RowTranspose rows, int64_t first_lane, int64_t end_lane,
               int64_t first_step) {
  const int64_t step_bytes = rows.lanes * rows.width;
  for (int64_t lane = first_lane; lane < end_lane; ++lane) {
    const std::byte* from =
        rows.from + first_step * step_bytes + lane * rows.width;
    std::byte* to =
        rows.to + lane * rows.to_lane_bytes + first_step * rows.width;
    for (int64_t step = first_step; step < rows.steps; ++step) {
      kCopy(from, to, rows.width);
      from += step_bytes;
      to += rows.width;
    }
  }
}

template <CopyFunction kCopy>
void CopyAll(const RowTranspose& rows) {
  CopyLanes<kCopy>(rows, 0, rows.lanes, 0);
}

// Squares of 16 / sizeof(T) steps and lanes. Each round interleaves the first
// half of the vectors with the second; the last leaves a lane in each.
template <typename T>
class Squares {
 public:
  static void Transpose(RowTranspose rows) {
    // Lanes outside: the steps of a lane follow one another in `to`.
    const int64_t whole_lanes = rows.lanes / kSide * kSide;
    const int64_t whole_steps = rows.steps / kSide * kSide;
    for (int64_t lane = 0; lane < whole_lanes; lane += kSide) {
      for (int64_t step = 0; step < whole_steps; step += kSide) {
        TransposeOne(rows, lane, step);
      }
    }
    constexpr CopyFunction kCopy = CopyRow<kWidth>;
    CopyLanes<kCopy>(rows, 0, whole_lanes, whole_steps);
    CopyLanes<kCopy>(rows, whole_lanes, rows.lanes, 0);
  }

 private:
  static constexpr int64_t kWidth = sizeof(T);
  static constexpr int64_t kSide = 16 / kWidth;
  using D = hn::FixedTag<T, kSide>;
  using Bytes = hn::FixedTag<uint8_t, 16>;
  using V = hn::Vec<D>;

  static HWY_INLINE void TransposeOne(RowTranspose rows, int64_t lane,
                                      int64_t step) {
    const auto* from = reinterpret_cast<const uint8_t*>(rows.from) +
                       (step * rows.lanes + lane) * kWidth;
    auto* to = reinterpret_cast<uint8_t*>(rows.to) + lane * rows.to_lane_bytes +
               step * kWidth;
    V square[kSide];
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kSide; ++i) {
      square[i] =
          hn::BitCast(D(), hn::LoadU(Bytes(), from + i * rows.lanes * kWidth));
    }
    HWY_UNROLL(16)
    for (int64_t side = 1; side < kSide; side *= 2) {
      V next[kSide];
      HWY_UNROLL(16)
      for (int64_t i = 0; i < kSide / 2; ++i) {
        next[2 * i] =
            hn::InterleaveLower(D(), square[i], square[i + kSide / 2]);
        next[2 * i + 1] =
            hn::InterleaveUpper(D(), square[i], square[i + kSide / 2]);
      }
      HWY_UNROLL(16)
      for (int64_t i = 0; i < kSide; ++i) square[i] = next[i];
    }
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kSide; ++i) {
      hn::StoreU(hn::BitCast(Bytes(), square[i]), Bytes(),
                 to + i * rows.to_lane_bytes);
    }
  }
};

}  // namespace

void TransposeRows(const RowTranspose& rows) {
  // Without rows there may be no memory to point into.
  if (rows.steps == 0 || rows.lanes == 0) return;
  switch (rows.width) {
    case 1:
      return Squares<uint8_t>::Transpose(rows);
    case 2:
      return Squares<uint16_t>::Transpose(rows);
    case 3:
      return CopyAll<CopyHalves<2>>(rows);
    case 4:
      return Squares<uint32_t>::Transpose(rows);
    case 8:
      return Squares<uint64_t>::Transpose(rows);
    case 16:
      return CopyAll<CopyRow<16>>(rows);
    default:
      break;
  }
  // Two copies of a fixed size are a few instructions; memcpy of a size known
  // at run time is a call.
  if (rows.width <= 8) return CopyAll<CopyHalves<4>>(rows);
  if (rows.width <= 16) return CopyAll<CopyHalves<8>>(rows);
  if (rows.width <= 32) return CopyAll<CopyHalves<16>>(rows);
  if (rows.width <= 64) return CopyAll<CopyHalves<32>>(rows);
  CopyAll<CopyRow<0>>(rows);
}

}  // namespace rill
