// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_VALUE_ESTIMATES_H_
#define RILL_ESTIMATORS_VALUE_ESTIMATES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/device/stream.h"
#include "rill/tensors/tensor.h"

namespace rill {

// Returns and advantages of steps, with the values that a network gave them:
// TorchRL's objectives.value.functional. value_estimators.h makes transforms of
// them.
//
// Shapes: all tensors are [*B, T, 1], time in the last dimension but the 1; or
//   [*B, T], where T is not 1. Lines of T steps may hold several trajectories,
//   one behind the other. Strided tensors are copied first.
// Dtypes: numbers are float32 or float64, all the same; flags are bool.
// Ends: `terminated` stops the bootstrap, so that next_value is taken as 0.
//   `done` stops the recursion. Values that a flag cuts off are not looked at and may
//   be NaN. Behind the last step of a line next_value stands for what follows.
// Numerics: in double, rounded once; within 1e-6 of a float64 reference.
// Device/Stream: all on the host, or all contiguous on one device. There the
//   estimate is enqueued on `stream`, null for the device's default one, and
//   the caller keeps the tensors until the stream got there. A line is one
//   thread, whose sums are the host's bit for bit; exp in V-trace may differ in
//   the last place. Shown on the fake device; CUDA links @rill//cuda.
// Errors: INVALID_ARGUMENT names the tensor or number, what it got and wants;
//   FAILED_PRECONDITION where tensors lie on different devices, or are strided on
//   one. Results are unchanged.
// Results: written in place where dtype and shape fit and the tensor is
//   writable, else made. They share no bytes with what is read.
// Thread-safety: thread-compatible.
// Cost: O(steps), without allocation where nothing is strided and results fit.
//
// Example (ValueEstimatesTest.Example runs it):
//   EstimatorSteps steps = {.reward = reward, .value = value,
//                           .next_value = next_value, .done = done,
//                           .terminated = terminated};
//   Advantages made;
//   RILL_RETURN_IF_ERROR(GaeAdvantage(steps, 0.99, 0.95, &made));
struct EstimatorSteps {
  Tensor reward = {};
  Tensor value = {};  // Of the state before the step; returns do not read it.
  Tensor next_value = {};  // Of the one behind it.
  Tensor done = {};
  Tensor terminated = {};
};

struct Advantages {
  Tensor advantage = {};
  Tensor value_target = {};
};

// r + gamma v'. gamma here and below in [0, 1].
absl::Status Td0Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns, const Stream* stream = nullptr);
// The sum of discounted rewards to the end, and the discounted value there.
absl::Status Td1Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns, const Stream* stream = nullptr);
// g_t = r + gamma ((1 - lmbda) v' + lmbda g_(t+1)); lmbda in [0, 1].
absl::Status TdLambdaReturn(const EstimatorSteps& steps, double gamma,
                            double lmbda, Tensor* returns,
                            const Stream* stream = nullptr);

// A_t = r + gamma v' - v + gamma lmbda A_(t+1); the target is A + v.
absl::Status GaeAdvantage(const EstimatorSteps& steps, double gamma,
                          double lmbda, Advantages* out,
                          const Stream* stream = nullptr);

struct VTraceOptions {
  double gamma = 0.99;
  double rho_thresh = 1;  // > 0; infinity clips nothing. So for c_thresh.
  double c_thresh = 1;
};
// IMPALA's off-policy correction. `log_pi` are logarithms of the actions'
// probabilities now, `log_mu` those when they were chosen.
absl::Status VTraceAdvantage(const EstimatorSteps& steps, const Tensor& log_pi,
                             const Tensor& log_mu, const VTraceOptions& options,
                             Advantages* out, const Stream* stream = nullptr);

// r_t + gamma r_(t+1) + ... up to the end; behind the last end of a line, up to
// the line's.
absl::Status RewardToGo(const Tensor& reward, const Tensor& done, double gamma,
                        Tensor* returns, const Stream* stream = nullptr);

// r_t + ... + gamma^(k-1) r_(t+k-1) + gamma^k v', where v' is that of the
// window's last step. Windows have `n_steps` > 0 steps, less before an end.
// Cost: O(steps x n_steps).
absl::Status NStepReturn(const EstimatorSteps& steps, int64_t n_steps,
                         double gamma, Tensor* returns,
                         const Stream* stream = nullptr);

}  // namespace rill

#endif  // RILL_ESTIMATORS_VALUE_ESTIMATES_H_
