// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_SLICE_MARKS_KERNELS_H_
#define RILL_TRANSFORMS_UNITS_SLICE_MARKS_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// What SliceMarks makes of flags on a device: a thread a row.
struct SliceMarksKernel {
  static constexpr const char* kName = "slice_marks";
  using Shared = NoState;
  using Local = NoState;

  // Bits of `places`: the first and the last real row of a draw.
  static constexpr uint8_t kFirst = 1;
  static constexpr uint8_t kLast = 2;

  struct Flag {
    const uint8_t* stored = nullptr;  // Null: it is not.
    uint8_t* marked = nullptr;        // May be the same bytes; null: none.
  };

  int64_t num_rows = 0;
  const uint8_t* places = nullptr;
  Flag truncated = {};
  Flag terminated = {};
  Flag done = {};
  Flag is_init = {};

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < num_rows; i += thread.grid_size()) {
      const bool is_last = (places[i] & kLast) != 0;
      const bool is_truncated = IsSet(truncated, i) || is_last;
      const bool is_terminated = IsSet(terminated, i);
      // Where done is not stored it is either of the two.
      const bool is_done = done.stored != nullptr
                               ? IsSet(done, i)
                               : is_truncated || is_terminated;
      truncated.marked[i] = is_truncated;
      terminated.marked[i] = is_terminated;
      done.marked[i] = is_done || is_last;
      if (is_init.marked == nullptr) continue;
      is_init.marked[i] = IsSet(is_init, i) || (places[i] & kFirst) != 0;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(places, num_rows);
    for (Flag* flag : {&truncated, &terminated, &done, &is_init}) {
      visit(flag->stored, flag->stored == nullptr ? 0 : num_rows);
      visit(flag->marked, flag->marked == nullptr ? 0 : num_rows);
    }
  }

 private:
  static constexpr bool IsSet(const Flag& flag, int64_t row) {
    return flag.stored != nullptr && flag.stored[row] != 0;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_SLICE_MARKS_KERNELS_H_
