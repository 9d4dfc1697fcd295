// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_IMAGES_MAX_KERNELS_H_
#define RILL_TRANSFORMS_IMAGES_MAX_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// TimeMaxPool for host and devices (device/kernels/kernel.h), an element a
// thread. Values before the newest two are ordered from the newest to the
// oldest.
template <typename T>
struct TimeMaxKernel {
  static constexpr const char* kName = sizeof(T) == 1   ? "time_max_1"
                                       : sizeof(T) == 4 ? "time_max_4"
                                                        : "time_max_8";
  using Shared = NoState;
  using Local = NoState;

  const T* value = nullptr;   // The one before the newest; null: none counts.
  const T* newest = nullptr;
  T* largest = nullptr;
  const T* before = nullptr;  // [lanes, num_before, width]
  T* after = nullptr;
  int64_t num_before = 0;
  int64_t width = 1;  // Elements of a lane.
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes * width;
         i += thread.grid_size()) {
      T most = newest[i];
      if (value != nullptr) Raise(value[i], &most);
      const int64_t first = i / width * num_before * width + i % width;
      for (int64_t k = 0; k < num_before; ++k) {
        const int64_t at = first + k * width;
        Raise(before[at], &most);
        after[at] = k == 0 ? value[i] : before[at - width];
      }
      largest[i] = most;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t bytes = lanes * width * int64_t{sizeof(T)};
    if (value != nullptr) visit(value, bytes);
    visit(newest, bytes);
    visit(largest, bytes);
    if (num_before == 0) return;
    visit(before, num_before * bytes);
    visit(after, num_before * bytes);
  }

 private:
  // A NaN in either stays.
  static constexpr void Raise(T x, T* most) {
    if (x > *most || x != x) *most = x;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_IMAGES_MAX_KERNELS_H_
