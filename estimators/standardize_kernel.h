// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_STANDARDIZE_KERNEL_H_
#define RILL_ESTIMATORS_STANDARDIZE_KERNEL_H_

#include <cmath>
#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::estimators_internal {

// (x - mean) / deviation of all values, for host and devices, in one block.
// Sums are in double: thread t adds every kThreads-th value from t on, then
// halves of the threads' sums are added to one another. Two passes, as a sum of
// squares less the squared mean would lose the digits of a small deviation
// beside a large mean.
template <typename T>
struct StandardizeKernel {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "standardize_f32" : "standardize_f64";
  static constexpr int kThreads = 1024;
  static constexpr int kHalvings = 10;
  // TorchRL's least standard deviation.
  static constexpr double kMinDeviation = 1e-4;
  struct Shared {
    double sums[kThreads];
  };
  struct Local {
    double mean;
  };

  T* values = nullptr;
  int64_t count = 0;  // > 0

  // The sum, its halvings and the mean; the same of squares; the values.
  constexpr int64_t num_phases() const { return 2 * (kHalvings + 1) + 2; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
                     Local& local) const {
    const int t = thread.thread;
    constexpr int64_t kMean = kHalvings + 1;
    constexpr int64_t kLast = 2 * kMean + 1;
    if (phase == 0) {
      double sum = 0;
      for (int64_t i = t; i < count; i += kThreads) {
        sum += static_cast<double>(values[i]);
      }
      shared.sums[t] = sum;
    } else if (phase < kMean) {
      Halve(phase - 1, t, shared);
    } else if (phase == kMean) {
      local.mean = shared.sums[0] / static_cast<double>(count);
    } else if (phase == kMean + 1) {
      double sum = 0;
      for (int64_t i = t; i < count; i += kThreads) {
        const double x = static_cast<double>(values[i]) - local.mean;
        sum += x * x;
      }
      shared.sums[t] = sum;
    } else if (phase < kLast) {
      Halve(phase - kMean - 2, t, shared);
    } else {
      // With count - 1, as torch.std has it.
      const double divisor = static_cast<double>(count > 1 ? count - 1 : 1);
      const double found = std::sqrt(shared.sums[0] / divisor);
      const double deviation = kMinDeviation < found ? found : kMinDeviation;
      for (int64_t i = t; i < count; i += kThreads) {
        values[i] = static_cast<T>(
            (static_cast<double>(values[i]) - local.mean) / deviation);
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(values, count * int64_t{sizeof(T)});
  }

 private:
  static constexpr void Halve(int64_t round, int t, Shared& shared) {
    const int half = kThreads >> (round + 1);
    if (t < half) shared.sums[t] += shared.sums[t + half];
  }
};

}  // namespace rill::estimators_internal

#endif  // RILL_ESTIMATORS_STANDARDIZE_KERNEL_H_
