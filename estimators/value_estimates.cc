// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/value_estimates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/estimators/recursion_kernels.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

// Each function checks all of its tensors before it makes or writes a result,
// so that an error leaves the results as they were. GAE, TD(lambda) and sums of
// rewards are the kernels of recursion_kernels.h. V-trace and n-step returns go
// line by line here: their steps do more than one recursion.

namespace rill {
namespace {

using estimators_internal::StepArrays;

// The tensors of a call, checked and contiguous.
class Inputs {
 public:
  // For rewards of such a dtype and shape.
  static absl::StatusOr<Inputs> Create(absl::string_view caller,
                                       const Tensor& reward) {
    const Shape& shape = reward.shape();
    const bool is_float =
        reward.dtype() == DType::kFloat32 || reward.dtype() == DType::kFloat64;
    if (!is_float || shape.rank() == 0) {
      return InvalidArgument(caller, ": reward: got ",
                             DTypeName(reward.dtype()), shape.ToString(),
                             ", want float32 or float64[*B, T, 1]");
    }
    // [*B, T, 1] or [*B, T]: the last dimension that is not the 1 is time.
    const bool has_one = shape.rank() > 1 && shape[shape.rank() - 1] == 1;
    Inputs inputs;
    inputs.caller_ = caller;
    inputs.dtype_ = reward.dtype();
    inputs.shape_ = shape;
    inputs.steps_ = shape[shape.rank() - (has_one ? 2 : 1)];
    inputs.lines_ =
        inputs.steps_ == 0 ? 0 : shape.num_elements() / inputs.steps_;
    RILL_ASSIGN_OR_RETURN(inputs.reward_, inputs.Read("reward", reward));
    return inputs;
  }

  absl::StatusOr<Tensor> Read(absl::string_view name,
                              const Tensor& tensor) const {
    return Read(name, dtype_, tensor);
  }
  absl::StatusOr<Tensor> ReadFlags(absl::string_view name,
                                   const Tensor& tensor) const {
    return Read(name, DType::kBool, tensor);
  }
  absl::Status ReadDone(const EstimatorSteps& steps) {
    RILL_ASSIGN_OR_RETURN(done_, ReadFlags("done", steps.done));
    return absl::OkStatus();
  }
  // All but values.
  absl::Status ReadSteps(const EstimatorSteps& steps) {
    RILL_ASSIGN_OR_RETURN(next_value_, Read("next_value", steps.next_value));
    RILL_RETURN_IF_ERROR(ReadDone(steps));
    RILL_ASSIGN_OR_RETURN(terminated_,
                          ReadFlags("terminated", steps.terminated));
    return absl::OkStatus();
  }
  absl::Status ReadValues(const EstimatorSteps& steps) {
    RILL_ASSIGN_OR_RETURN(value_, Read("value", steps.value));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> MakeResult(const Tensor& found) const {
    if (MayReuse(found, dtype_, shape_, {}, {.is_passed_in = true})) {
      return found;
    }
    return Tensor::Empty(dtype_, shape_);
  }

  // Calls `work` with the arrays, float or double.
  template <typename Work>
  void Visit(const Work& work) const {
    if (dtype_ == DType::kFloat32) {
      work(Arrays<float>());
    } else {
      work(Arrays<double>());
    }
  }

 private:
  absl::StatusOr<Tensor> Read(absl::string_view name, DType dtype,
                              const Tensor& tensor) const {
    if (tensor.dtype() != dtype || tensor.shape() != shape_) {
      return InvalidArgument(
          caller_, ": ", name, ": got ", DTypeName(tensor.dtype()),
          tensor.shape().ToString(), ", want ", DTypeName(dtype),
          shape_.ToString(), ", as the reward says",
          tensor.shape().num_elements() == shape_.num_elements()
              ? "; Unsqueeze and Squeeze change the last dimension"
              : "");
    }
    if (!tensor.is_host()) {
      return FailedPrecondition(caller_, ": ", name, ": lies on ",
                                tensor.device().ToString(),
                                ", want host memory");
    }
    return tensor.Contiguous();
  }

  template <typename T>
  StepArrays<T> Arrays() const {
    return {.lines = lines_,
            .steps = steps_,
            .reward = reward_.data<T>(),
            .value = value_.data<T>(),
            .next_value = next_value_.data<T>(),
            // Bytes and not bool: vectors load them.
            .done = done_.data<uint8_t>(),
            .terminated = terminated_.data<uint8_t>()};
  }

  absl::string_view caller_;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  int64_t lines_ = 0;
  int64_t steps_ = 0;
  Tensor reward_;
  Tensor value_;
  Tensor next_value_;
  Tensor done_;
  Tensor terminated_;
};

absl::Status CheckFraction(absl::string_view caller, absl::string_view name,
                           double got) {
  if (got >= 0 && got <= 1) return absl::OkStatus();
  return InvalidArgument(caller, ": ", name, ": got ", got, ", want [0, 1]");
}

absl::Status CheckThreshold(absl::string_view caller, absl::string_view name,
                            double got) {
  if (got > 0) return absl::OkStatus();
  return InvalidArgument(caller, ": ", name, ": got ", got, ", want > 0");
}

// The value of the state behind step i.
template <typename T>
double Bootstrap(const StepArrays<T>& arrays, int64_t i) {
  return arrays.terminated[i] != 0 ? 0
                                   : static_cast<double>(arrays.next_value[i]);
}

template <typename T>
void VTraceLine(const StepArrays<T>& arrays, const T* log_pi, const T* log_mu,
                const VTraceOptions& options, int64_t begin, T* advantage,
                T* target) {
  // Espeholt et al., 2018: target_t - v_t = delta_t + gamma c_t (target_(t+1) -
  // v_(t+1)), from the end.
  double correction = 0;   // Target - value of the step behind.
  double next_target = 0;  // Rounded nowhere.
  for (int64_t i = begin + arrays.steps; i-- > begin;) {
    // Behind the last step of a line nothing is known but next_value.
    const bool is_end = arrays.done[i] != 0 || i == begin + arrays.steps - 1;
    const double ratio = std::exp(static_cast<double>(log_pi[i]) -
                                  static_cast<double>(log_mu[i]));
    // rho decides which policy's values the targets tend to, c only how soon
    // (Espeholt et al., 2018).
    const double rho = std::min(ratio, options.rho_thresh);
    const double c = std::min(ratio, options.c_thresh);
    const double reward = static_cast<double>(arrays.reward[i]);
    const double value = static_cast<double>(arrays.value[i]);
    const double bootstrap = Bootstrap(arrays, i);
    const double delta = rho * (reward + options.gamma * bootstrap - value);
    // The advantage takes the corrected target of the next step, where there is
    // one in the trajectory.
    double behind = bootstrap;
    if (!is_end && arrays.terminated[i] == 0) behind = next_target;
    correction = is_end ? delta : delta + options.gamma * c * correction;
    next_target = value + correction;
    advantage[i] =
        static_cast<T>(rho * (reward + options.gamma * behind - value));
    target[i] = static_cast<T>(next_target);
  }
}

template <typename T>
void NStepLine(const StepArrays<T>& arrays, int64_t n_steps, double gamma,
               int64_t begin, T* returns) {
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

absl::Status LambdaReturn(absl::string_view caller, const EstimatorSteps& steps,
                          double gamma, double lmbda, Tensor* returns) {
  RILL_RETURN_IF_ERROR(CheckFraction(caller, "gamma", gamma));
  RILL_RETURN_IF_ERROR(CheckFraction(caller, "lmbda", lmbda));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(caller, steps.reward));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  inputs.Visit([&]<typename T>(const StepArrays<T>& arrays) {
    estimators_internal::TdLambdaLines(arrays, gamma, lmbda,
                                       returns->data<T>());
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status Td0Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns) {
  return LambdaReturn("Td0Return", steps, gamma, 0, returns);
}

absl::Status Td1Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns) {
  return LambdaReturn("Td1Return", steps, gamma, 1, returns);
}

absl::Status TdLambdaReturn(const EstimatorSteps& steps, double gamma,
                            double lmbda, Tensor* returns) {
  return LambdaReturn("TdLambdaReturn", steps, gamma, lmbda, returns);
}

absl::Status GaeAdvantage(const EstimatorSteps& steps, double gamma,
                          double lmbda, Advantages* out) {
  constexpr absl::string_view kCaller = "GaeAdvantage";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "lmbda", lmbda));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(kCaller, steps.reward));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_RETURN_IF_ERROR(inputs.ReadValues(steps));
  // Both are made before either is set.
  RILL_ASSIGN_OR_RETURN(Tensor advantage, inputs.MakeResult(out->advantage));
  RILL_ASSIGN_OR_RETURN(out->value_target,
                        inputs.MakeResult(out->value_target));
  out->advantage = std::move(advantage);
  inputs.Visit([&]<typename T>(const StepArrays<T>& arrays) {
    estimators_internal::GaeLines(arrays, gamma, lmbda,
                                  out->advantage.data<T>(),
                                  out->value_target.data<T>());
  });
  return absl::OkStatus();
}

absl::Status VTraceAdvantage(const EstimatorSteps& steps, const Tensor& log_pi,
                             const Tensor& log_mu, const VTraceOptions& options,
                             Advantages* out) {
  constexpr absl::string_view kCaller = "VTraceAdvantage";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", options.gamma));
  RILL_RETURN_IF_ERROR(
      CheckThreshold(kCaller, "rho_thresh", options.rho_thresh));
  RILL_RETURN_IF_ERROR(CheckThreshold(kCaller, "c_thresh", options.c_thresh));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(kCaller, steps.reward));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_RETURN_IF_ERROR(inputs.ReadValues(steps));
  RILL_ASSIGN_OR_RETURN(const Tensor pi, inputs.Read("log_pi", log_pi));
  RILL_ASSIGN_OR_RETURN(const Tensor mu, inputs.Read("log_mu", log_mu));
  RILL_ASSIGN_OR_RETURN(Tensor advantage, inputs.MakeResult(out->advantage));
  RILL_ASSIGN_OR_RETURN(out->value_target,
                        inputs.MakeResult(out->value_target));
  out->advantage = std::move(advantage);
  inputs.Visit([&]<typename T>(const StepArrays<T>& arrays) {
    for (int64_t line = 0; line < arrays.lines; ++line) {
      VTraceLine(arrays, pi.data<T>(), mu.data<T>(), options,
                 line * arrays.steps, out->advantage.data<T>(),
                 out->value_target.data<T>());
    }
  });
  return absl::OkStatus();
}

absl::Status RewardToGo(const Tensor& reward, const Tensor& done, double gamma,
                        Tensor* returns) {
  constexpr absl::string_view kCaller = "RewardToGo";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(kCaller, reward));
  RILL_RETURN_IF_ERROR(inputs.ReadDone({.done = done}));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  inputs.Visit([&]<typename T>(const StepArrays<T>& arrays) {
    estimators_internal::RewardToGoLines(arrays, gamma, returns->data<T>());
  });
  return absl::OkStatus();
}

absl::Status NStepReturn(const EstimatorSteps& steps, int64_t n_steps,
                         double gamma, Tensor* returns) {
  constexpr absl::string_view kCaller = "NStepReturn";
  if (n_steps < 1) {
    return InvalidArgument(kCaller, ": n_steps: got ", n_steps, ", want > 0");
  }
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(kCaller, steps.reward));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  inputs.Visit([&]<typename T>(const StepArrays<T>& arrays) {
    for (int64_t line = 0; line < arrays.lines; ++line) {
      NStepLine(arrays, n_steps, gamma, line * arrays.steps,
                returns->data<T>());
    }
  });
  return absl::OkStatus();
}

}  // namespace rill
