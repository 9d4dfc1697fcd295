// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_ROW_TRANSPOSE_H_
#define RILL_ENVS_STEPS_ROW_TRANSPOSE_H_

#include <cstddef>
#include <cstdint>

namespace rill {

struct RowTranspose {
  const std::byte* from = nullptr;  // [steps, lanes] rows, side by side.
  int64_t steps = 0;
  int64_t lanes = 0;
  int64_t width = 1;          // Bytes of a row, >= 1.
  std::byte* to = nullptr;    // [lanes, steps] rows.
  int64_t to_lane_bytes = 0;  // From a lane's first row to the next lane's.
};

// Copies rows of steps to where each lane's steps follow one another. `from`
// and `to` do not overlap; nothing between the lanes of `to` is touched.
// Thread-safety: thread-safe.
// Cost: rows of 1, 2, 4 and 8 bytes go in vectors of 16 bytes, 16 / width lanes
//   by as many steps at once. Rows that fill no such square, and those of other
//   widths, go one by one.
void TransposeRows(const RowTranspose& rows);

}  // namespace rill

#endif  // RILL_ENVS_STEPS_ROW_TRANSPOSE_H_
