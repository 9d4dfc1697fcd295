// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_LINE_KERNELS_H_
#define RILL_ESTIMATORS_LINE_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/estimators/recursion_kernels.h"

// The estimators of value_estimates.h step by step, for host and devices
// (device/kernels/kernel.h): a thread follows a line from its end to its start.
// Sums are those of recursion_kernels.h bit for bit, where no compiler fuses a
// multiplication with an addition.

namespace rill::estimators_internal {

// The value of the state behind step i.
template <typename T>
constexpr double Bootstrap(const StepArrays<T>& arrays, int64_t i) {
  return arrays.terminated[i] != 0 ? 0
                                   : static_cast<double>(arrays.next_value[i]);
}

// A line is the struct of one estimator: its numbers, results and further
// inputs. Run makes the results of the steps [begin, begin + arrays.steps).
// Visit is KernelCall's, of pointers to `count` steps.

// Schulman et al., 2016.
template <typename T>
struct GaeLine {
  static constexpr const char* kName = sizeof(T) == 4 ? "gae_f32" : "gae_f64";

  double gamma = 1;
  double lmbda = 1;
  T* advantage = nullptr;
  T* target = nullptr;

  constexpr void Run(const StepArrays<T>& arrays, int64_t begin) const {
    const double carry = gamma * lmbda;
    double x = 0;
    for (int64_t i = begin + arrays.steps; i-- > begin;) {
      const auto value = static_cast<double>(arrays.value[i]);
      const double add = static_cast<double>(arrays.reward[i]) +
                         gamma * Bootstrap(arrays, i) - value;
      // Selected, not only multiplied: 0 times a NaN from behind an end is NaN.
      x = arrays.done[i] != 0 || carry == 0 ? add : add + carry * x;
      advantage[i] = static_cast<T>(x);
      target[i] = static_cast<T>(x + value);
    }
  }
  template <typename Visit>
  void VisitResults(const Visit& visit, int64_t count) {
    visit(advantage, count);
    visit(target, count);
  }
};

// Sutton, 1988.
template <typename T>
struct TdLambdaLine {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "td_lambda_f32" : "td_lambda_f64";

  double gamma = 1;
  double lmbda = 1;
  T* returns = nullptr;

  constexpr void Run(const StepArrays<T>& arrays, int64_t begin) const {
    const double carry = gamma * lmbda;
    // The last step of a line is as one that is done.
    double x =
        arrays.steps == 0 ? 0 : Bootstrap(arrays, begin + arrays.steps - 1);
    for (int64_t i = begin + arrays.steps; i-- > begin;) {
      const double next = Bootstrap(arrays, i);
      const bool done = arrays.done[i] != 0;
      // Where lambda is 1 the value is not looked at: it may be NaN.
      const double part = lmbda == 1 ? 0 : (1 - lmbda) * next;
      const double add =
          static_cast<double>(arrays.reward[i]) + gamma * (done ? next : part);
      x = done || carry == 0 ? add : add + carry * x;
      returns[i] = static_cast<T>(x);
    }
  }
  template <typename Visit>
  void VisitResults(const Visit& visit, int64_t count) {
    visit(returns, count);
  }
};

template <typename T>
struct RewardToGoLine {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "reward_to_go_f32" : "reward_to_go_f64";

  double gamma = 1;
  T* returns = nullptr;

  constexpr void Run(const StepArrays<T>& arrays, int64_t begin) const {
    double x = 0;
    for (int64_t i = begin + arrays.steps; i-- > begin;) {
      const auto add = static_cast<double>(arrays.reward[i]);
      x = arrays.done[i] != 0 || gamma == 0 ? add : add + gamma * x;
      returns[i] = static_cast<T>(x);
    }
  }
  template <typename Visit>
  void VisitResults(const Visit& visit, int64_t count) {
    visit(returns, count);
  }
};

// Espeholt et al., 2018: target_t - v_t = delta_t + gamma c_t (target_(t+1) -
// v_(t+1)), from the end.
template <typename T>
struct VTraceLine {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "vtrace_f32" : "vtrace_f64";

  double gamma = 1;
  double rho_thresh = 1;
  double c_thresh = 1;
  const T* log_pi = nullptr;
  const T* log_mu = nullptr;
  T* advantage = nullptr;
  T* target = nullptr;

  constexpr void Run(const StepArrays<T>& arrays, int64_t begin) const {
    double correction = 0;   // Target - value of the step behind.
    double next_target = 0;  // Rounded nowhere.
    for (int64_t i = begin + arrays.steps; i-- > begin;) {
      // Behind the last step of a line nothing is known but next_value.
      const bool is_end = arrays.done[i] != 0 || i == begin + arrays.steps - 1;
      const double ratio = std::exp(static_cast<double>(log_pi[i]) -
                                    static_cast<double>(log_mu[i]));
      // rho decides which policy's values the targets tend to, c only how soon.
      const double rho = ratio < rho_thresh ? ratio : rho_thresh;
      const double c = ratio < c_thresh ? ratio : c_thresh;
      const auto reward = static_cast<double>(arrays.reward[i]);
      const auto value = static_cast<double>(arrays.value[i]);
      const double bootstrap = Bootstrap(arrays, i);
      const double delta = rho * (reward + gamma * bootstrap - value);
      // The advantage takes the corrected target of the next step, where there
      // is one in the trajectory.
      double behind = bootstrap;
      if (!is_end && arrays.terminated[i] == 0) behind = next_target;
      correction = is_end ? delta : delta + gamma * c * correction;
      next_target = value + correction;
      advantage[i] = static_cast<T>(rho * (reward + gamma * behind - value));
      target[i] = static_cast<T>(next_target);
    }
  }
  template <typename Visit>
  void VisitResults(const Visit& visit, int64_t count) {
    visit(log_pi, count);
    visit(log_mu, count);
    visit(advantage, count);
    visit(target, count);
  }
};

template <typename T>
struct NStepLine {
  static constexpr const char* kName =
      sizeof(T) == 4 ? "n_step_f32" : "n_step_f64";

  double gamma = 1;
  int64_t n_steps = 1;
  T* returns = nullptr;

  constexpr void Run(const StepArrays<T>& arrays, int64_t begin) const {
    const int64_t end = begin + arrays.steps;
    for (int64_t i = begin; i < end; ++i) {
      // Compared so, i + n_steps cannot overflow.
      const int64_t limit = n_steps < end - i ? i + n_steps : end;
      // Each window is summed anew. A sum that slides would divide by gamma,
      // which may be 0, and carry its rounding along.
      double sum = 0;
      double power = 1;
      int64_t last = i;
      for (int64_t j = i; j < limit; ++j) {
        sum += power * static_cast<double>(arrays.reward[j]);
        power *= gamma;
        last = j;
        if (arrays.done[j] != 0) break;
      }
      returns[i] = static_cast<T>(sum + power * Bootstrap(arrays, last));
    }
  }
  template <typename Visit>
  void VisitResults(const Visit& visit, int64_t count) {
    visit(returns, count);
  }
};

// A line of such a kind for each thread.
template <typename T, template <typename> typename Line>
struct LineKernel {
  static constexpr const char* kName = Line<T>::kName;
  using Shared = NoState;
  using Local = NoState;

  StepArrays<T> arrays = {};
  Line<T> line = {};

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < arrays.lines;
         i += thread.grid_size()) {
      line.Run(arrays, i * arrays.steps);
    }
  }
  // The arrays that an estimator does not read are null.
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t count = arrays.lines * arrays.steps;
    const auto visit_steps = [&]<typename U>(U*& steps, int64_t number) {
      visit(steps,
            steps == nullptr ? 0 : number * static_cast<int64_t>(sizeof(U)));
    };
    visit_steps(arrays.reward, count);
    visit_steps(arrays.value, count);
    visit_steps(arrays.next_value, count);
    visit_steps(arrays.done, count);
    visit_steps(arrays.terminated, count);
    line.VisitResults(visit_steps, count);
  }
};

}  // namespace rill::estimators_internal

#endif  // RILL_ESTIMATORS_LINE_KERNELS_H_
