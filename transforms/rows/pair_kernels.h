// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_PAIR_KERNELS_H_
#define RILL_TRANSFORMS_ROWS_PAIR_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// out = a + sign * b, element by element, for host and devices: float or
// double. `out` may be `a` or `b`.
template <typename T>
struct PairSumKernel {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "pair_sum_f32" : "pair_sum_f64";
  using Shared = NoState;
  using Local = NoState;

  const T* a = nullptr;
  T sign = 1;
  const T* b = nullptr;
  T* out = nullptr;
  int64_t count = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < count; i += thread.grid_size()) {
      out[i] = a[i] + sign * b[i];
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t bytes = count * int64_t{sizeof(T)};
    visit(a, bytes);
    visit(b, bytes);
    visit(out, bytes);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_PAIR_KERNELS_H_
