// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_KERNELS_TESTING_SCALE_KERNEL_H_
#define RILL_DEVICE_KERNELS_TESTING_SCALE_KERNEL_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill {

// Multiplies values by a factor.
struct Scale {
  static constexpr const char* kName = "scale";
  using Shared = NoState;
  using Local = NoState;

  double* values = nullptr;
  int64_t count = 0;
  double factor = 1;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      values[i] *= factor;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(values, count * static_cast<int64_t>(sizeof(double)));
  }
};

}  // namespace rill

#endif  // RILL_DEVICE_KERNELS_TESTING_SCALE_KERNEL_H_
