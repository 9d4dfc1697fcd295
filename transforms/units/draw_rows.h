// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_DRAW_ROWS_H_
#define RILL_TRANSFORMS_UNITS_DRAW_ROWS_H_

#include <cstdint>

namespace rill::transforms_internal {

// The rows of one draw: consecutive steps of one trajectory, first those of the
// batch, then those of the list PlanLayout::kStepsBehind. A position counts
// them from the first row that does not pad. For host and devices
// (device/kernels/kernel.h).
struct DrawRows {
  int64_t draw = 0;
  // Rows [begin, end) of the batch; [first, last] of them do not pad.
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first = 0;
  int64_t last = 0;
  // Rows [behind, behind + num_behind) of the list.
  int64_t behind = 0;
  int64_t num_behind = 0;

  constexpr int64_t num_real() const { return last - first + 1; }
  constexpr int64_t num_positions() const { return num_real() + num_behind; }
  // The position of the row that a row of the batch is, or repeats.
  constexpr int64_t PositionOf(int64_t row) const {
    return (row < first ? first : row > last ? last : row) - first;
  }
  // The elements of a position, where each row has `width`.
  template <typename T>
  constexpr const T* At(int64_t position, const T* batch, const T* list,
                        int64_t width) const {
    return position < num_real()
               ? batch + (first + position) * width
               : list + (behind + position - num_real()) * width;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_DRAW_ROWS_H_
