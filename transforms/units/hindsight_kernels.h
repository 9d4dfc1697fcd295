// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_HINDSIGHT_KERNELS_H_
#define RILL_TRANSFORMS_UNITS_HINDSIGHT_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// done = terminated or truncated in relabelled rows, on a device.
struct HindsightDoneKernel {
  static constexpr const char* kName = "hindsight_done";
  using Shared = NoState;
  using Local = NoState;

  const int64_t* relabelled = nullptr;  // Rows, each once.
  int64_t count = 0;
  int64_t num_rows = 0;  // Of the batch.
  const uint8_t* terminated = nullptr;
  const uint8_t* truncated = nullptr;  // Null: there is none.
  uint8_t* done = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      const int64_t row = relabelled[i];
      done[row] =
          terminated[row] != 0 || (truncated != nullptr && truncated[row] != 0);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(relabelled, count * static_cast<int64_t>(sizeof(int64_t)));
    visit(terminated, num_rows);
    visit(truncated, truncated == nullptr ? 0 : num_rows);
    visit(done, num_rows);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_HINDSIGHT_KERNELS_H_
