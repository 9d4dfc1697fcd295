// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "nanobind/nanobind.h"
#include "rill/estimators/value_estimates.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Without the interpreter's lock.
template <typename Estimate>
void Run(const Estimate& estimate) {
  absl::Status status;
  {
    const Unlocked unlocked;
    status = estimate();
  }
  Check(std::move(status));
}

// The steps that returns are made of.
EstimatorSteps StepsOf(nb::handle next_value, nb::handle reward,
                       nb::handle done, nb::handle terminated) {
  return {.reward = TensorOf(reward, "reward"),
          .next_value = TensorOf(next_value, "next_state_value"),
          .done = TensorOf(done, "done"),
          .terminated = TensorOf(terminated, "terminated")};
}

nb::object LambdaReturn(double gamma, double lmbda, nb::handle next_value,
                        nb::handle reward, nb::handle done,
                        nb::handle terminated) {
  const EstimatorSteps steps = StepsOf(next_value, reward, done, terminated);
  Tensor returns;
  Run([&] { return TdLambdaReturn(steps, gamma, lmbda, &returns); });
  return ArrayOf(returns, "returns");
}

nb::object StepReturn(int64_t n_steps, double gamma, nb::handle next_value,
                      nb::handle reward, nb::handle done,
                      nb::handle terminated) {
  const EstimatorSteps steps = StepsOf(next_value, reward, done, terminated);
  Tensor returns;
  Run([&] { return NStepReturn(steps, n_steps, gamma, &returns); });
  return ArrayOf(returns, "returns");
}

nb::object SumToEnd(double gamma, nb::handle reward, nb::handle done) {
  const Tensor rewards = TensorOf(reward, "reward");
  const Tensor ends = TensorOf(done, "done");
  Tensor returns;
  Run([&] { return RewardToGo(rewards, ends, gamma, &returns); });
  return ArrayOf(returns, "returns");
}

nb::tuple ArraysOf(const Advantages& made) {
  return nb::make_tuple(ArrayOf(made.advantage, "advantage"),
                        ArrayOf(made.value_target, "value_target"));
}

nb::tuple Gae(double gamma, double lmbda, nb::handle value,
              nb::handle next_value, nb::handle reward, nb::handle done,
              nb::handle terminated) {
  EstimatorSteps steps = StepsOf(next_value, reward, done, terminated);
  steps.value = TensorOf(value, "state_value");
  Advantages made;
  Run([&] { return GaeAdvantage(steps, gamma, lmbda, &made); });
  return ArraysOf(made);
}

nb::tuple VTraceOf(double gamma, double rho_thresh, double c_thresh,
                   nb::handle log_pi, nb::handle log_mu, nb::handle value,
                   nb::handle next_value, nb::handle reward, nb::handle done,
                   nb::handle terminated) {
  EstimatorSteps steps = StepsOf(next_value, reward, done, terminated);
  steps.value = TensorOf(value, "state_value");
  const Tensor pi = TensorOf(log_pi, "log_pi");
  const Tensor mu = TensorOf(log_mu, "log_mu");
  const VTraceOptions options = {
      .gamma = gamma, .rho_thresh = rho_thresh, .c_thresh = c_thresh};
  Advantages made;
  Run([&] { return VTraceAdvantage(steps, pi, mu, options, &made); });
  return ArraysOf(made);
}

}  // namespace

void BindEstimators(nb::module_& module) {
  module.def("lambda_return", &LambdaReturn);
  module.def("n_step_return", &StepReturn);
  module.def("reward_to_go", &SumToEnd);
  module.def("gae", &Gae);
  module.def("v_trace", &VTraceOf);
}

}  // namespace rill::python
