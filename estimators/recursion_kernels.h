// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_RECURSION_KERNELS_H_
#define RILL_ESTIMATORS_RECURSION_KERNELS_H_

#include <cstdint>

namespace rill::estimators_internal {

// Steps of several lines, [lines, steps]: those of a line lie one behind the
// other. A flag is 0 or 1.
template <typename T>
struct StepArrays {
  int64_t lines = 0;
  int64_t steps = 0;
  const T* reward = nullptr;
  const T* value = nullptr;
  const T* next_value = nullptr;
  const uint8_t* done = nullptr;
  const uint8_t* terminated = nullptr;
};

// x_t = a_t + b_t x_(t+1) along each line, from its end to its start. Kernels
// for the widest vectors of the processor: a_t and b_t are made by vectors over
// time, eight lines are then followed at once. All in double; results are
// rounded once. Values behind an end are not looked at, NaN neither.
// Thread-safety: thread-safe. Cost: O(steps); 17 KiB of the stack.

// x is the advantage, and the target x + value.
void GaeLines(const StepArrays<float>& arrays, double gamma, double lmbda,
              float* advantage, float* value_target);
void GaeLines(const StepArrays<double>& arrays, double gamma, double lmbda,
              double* advantage, double* value_target);

// x is the lambda return. Does not read values.
void TdLambdaLines(const StepArrays<float>& arrays, double gamma, double lmbda,
                   float* returns);
void TdLambdaLines(const StepArrays<double>& arrays, double gamma, double lmbda,
                   double* returns);

// x is the sum of discounted rewards. Reads rewards and done.
void RewardToGoLines(const StepArrays<float>& arrays, double gamma,
                     float* returns);
void RewardToGoLines(const StepArrays<double>& arrays, double gamma,
                     double* returns);

}  // namespace rill::estimators_internal

#endif  // RILL_ESTIMATORS_RECURSION_KERNELS_H_
