// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TIMELINE_LINE_MASK_KERNEL_H_
#define RILL_TRANSFORMS_TIMELINE_LINE_MASK_KERNEL_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// Clears the first `cut` rows of each line of a mask, for host and devices, a
// row a thread. A new mask is set elsewhere.
struct LineMaskKernel {
  static constexpr const char* kName = "line_mask";
  using Shared = NoState;
  using Local = NoState;

  uint8_t* mask = nullptr;
  int64_t rows = 0;
  int64_t time = 1;  // Rows of a line.
  int64_t cut = 0;
  bool is_new = false;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < rows; i += thread.grid_size()) {
      if (i % time < cut) {
        mask[i] = 0;
      } else if (is_new) {
        mask[i] = 1;
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(mask, rows);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_TIMELINE_LINE_MASK_KERNEL_H_
