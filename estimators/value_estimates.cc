// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/value_estimates.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/estimators/line_kernels.h"
#include "rill/estimators/recursion_kernels.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

// Each function checks all of its tensors before it makes or writes a result,
// so that an error leaves the results as they were. On the host GAE, TD(lambda)
// and sums of rewards are the kernels of recursion_kernels.h. V-trace and
// n-step returns, whose steps do more than one recursion, and all of them on a
// device are the lines of line_kernels.h.

namespace rill {
namespace {

using estimators_internal::GaeLine;
using estimators_internal::LineKernel;
using estimators_internal::NStepLine;
using estimators_internal::RewardToGoLine;
using estimators_internal::StepArrays;
using estimators_internal::TdLambdaLine;
using estimators_internal::VTraceLine;

// Threads of a block on a device. A line has one thread, and few lines are to
// have many processors.
constexpr int kThreads = 32;

// The tensors of a call, checked and contiguous.
class Inputs {
 public:
  // For rewards of such a dtype and shape, which lie there. `stream` is null
  // for the default one of their device.
  static absl::StatusOr<Inputs> Create(absl::string_view caller,
                                       const Tensor& reward,
                                       const Stream* stream) {
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
    if (reward.memory_kind() == MemoryKind::kDevice) {
      inputs.memory_ = {.device = reward.device(),
                        .memory_kind = MemoryKind::kDevice};
    }
    if (stream == nullptr) {
      RILL_ASSIGN_OR_RETURN(inputs.own_stream_,
                            Stream::Default(inputs.memory_.device));
    } else if (stream->device() != inputs.memory_.device) {
      return InvalidArgument(caller, ": stream: got one of ",
                             stream->device().ToString(), ", want one of ",
                             inputs.memory_.device.ToString(),
                             ", where the reward lies");
    }
    inputs.stream_ = stream;
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
    if (MayReuse(found, dtype_, shape_, {},
                 {.memory = memory_, .is_passed_in = true})) {
      return found;
    }
    return Tensor::Empty(dtype_, shape_, memory_);
  }

  // Makes the results: on the host by `on_host(arrays)`, on a device by the
  // line that `line_of(arrays)` gives. Float or double.
  template <template <typename> typename Line, typename OnHost, typename LineOf>
  absl::Status Make(const OnHost& on_host, const LineOf& line_of) const {
    const auto make = [&]<typename T>(const StepArrays<T>& arrays) {
      if (memory_.device.is_cpu()) {
        on_host(arrays);
        return absl::OkStatus();
      }
      if (arrays.lines == 0) return absl::OkStatus();
      const LineKernel<T, Line> kernel = {.arrays = arrays,
                                          .line = line_of(arrays)};
      return LaunchKernel(kernel, GridFor(arrays.lines, kThreads),
                          stream_ == nullptr ? *own_stream_ : *stream_);
    };
    return dtype_ == DType::kFloat32 ? make(Arrays<float>())
                                     : make(Arrays<double>());
  }
  // Where the host follows the lines too.
  template <template <typename> typename Line, typename LineOf>
  absl::Status Make(const LineOf& line_of) const {
    return Make<Line>(
        [&]<typename T>(const StepArrays<T>& arrays) {
          const Line<T> line = line_of(arrays);
          for (int64_t i = 0; i < arrays.lines; ++i) {
            line.Run(arrays, i * arrays.steps);
          }
        },
        line_of);
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
    const bool is_on_device = tensor.memory_kind() == MemoryKind::kDevice;
    const Device device = is_on_device ? tensor.device() : Device::Cpu();
    if (device != memory_.device) {
      return FailedPrecondition(
          caller_, ": ", name, ": lies on ", device.ToString(), ", want ",
          memory_.device.ToString(), ", where the reward lies");
    }
    // A copy on a device would wait for it.
    if (is_on_device && !tensor.is_contiguous()) {
      return FailedPrecondition(
          caller_, ": ", name, ": is strided on ", device.ToString(),
          ", want a contiguous one; Contiguous() makes it");
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
  Tensor::Options memory_;
  const Stream* stream_ = nullptr;
  std::optional<Stream> own_stream_;  // Where stream_ is null.
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

absl::Status LambdaReturn(absl::string_view caller, const EstimatorSteps& steps,
                          double gamma, double lmbda, const Stream* stream,
                          Tensor* returns) {
  RILL_RETURN_IF_ERROR(CheckFraction(caller, "gamma", gamma));
  RILL_RETURN_IF_ERROR(CheckFraction(caller, "lmbda", lmbda));
  RILL_ASSIGN_OR_RETURN(Inputs inputs,
                        Inputs::Create(caller, steps.reward, stream));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  return inputs.Make<TdLambdaLine>(
      [&]<typename T>(const StepArrays<T>& arrays) {
        estimators_internal::TdLambdaLines(arrays, gamma, lmbda,
                                           returns->data<T>());
      },
      [&]<typename T>(const StepArrays<T>& /*arrays*/) {
        return TdLambdaLine<T>{gamma, lmbda, returns->data<T>()};
      });
}

}  // namespace

absl::Status Td0Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns, const Stream* stream) {
  return LambdaReturn("Td0Return", steps, gamma, 0, stream, returns);
}

absl::Status Td1Return(const EstimatorSteps& steps, double gamma,
                       Tensor* returns, const Stream* stream) {
  return LambdaReturn("Td1Return", steps, gamma, 1, stream, returns);
}

absl::Status TdLambdaReturn(const EstimatorSteps& steps, double gamma,
                            double lmbda, Tensor* returns,
                            const Stream* stream) {
  return LambdaReturn("TdLambdaReturn", steps, gamma, lmbda, stream, returns);
}

absl::Status GaeAdvantage(const EstimatorSteps& steps, double gamma,
                          double lmbda, Advantages* out, const Stream* stream) {
  constexpr absl::string_view kCaller = "GaeAdvantage";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "lmbda", lmbda));
  RILL_ASSIGN_OR_RETURN(Inputs inputs,
                        Inputs::Create(kCaller, steps.reward, stream));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_RETURN_IF_ERROR(inputs.ReadValues(steps));
  // Both are made before either is set.
  RILL_ASSIGN_OR_RETURN(Tensor advantage, inputs.MakeResult(out->advantage));
  RILL_ASSIGN_OR_RETURN(out->value_target,
                        inputs.MakeResult(out->value_target));
  out->advantage = std::move(advantage);
  return inputs.Make<GaeLine>(
      [&]<typename T>(const StepArrays<T>& arrays) {
        estimators_internal::GaeLines(arrays, gamma, lmbda,
                                      out->advantage.data<T>(),
                                      out->value_target.data<T>());
      },
      [&]<typename T>(const StepArrays<T>& /*arrays*/) {
        return GaeLine<T>{gamma, lmbda, out->advantage.data<T>(),
                          out->value_target.data<T>()};
      });
}

absl::Status VTraceAdvantage(const EstimatorSteps& steps, const Tensor& log_pi,
                             const Tensor& log_mu, const VTraceOptions& options,
                             Advantages* out, const Stream* stream) {
  constexpr absl::string_view kCaller = "VTraceAdvantage";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", options.gamma));
  RILL_RETURN_IF_ERROR(
      CheckThreshold(kCaller, "rho_thresh", options.rho_thresh));
  RILL_RETURN_IF_ERROR(CheckThreshold(kCaller, "c_thresh", options.c_thresh));
  RILL_ASSIGN_OR_RETURN(Inputs inputs,
                        Inputs::Create(kCaller, steps.reward, stream));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_RETURN_IF_ERROR(inputs.ReadValues(steps));
  RILL_ASSIGN_OR_RETURN(const Tensor pi, inputs.Read("log_pi", log_pi));
  RILL_ASSIGN_OR_RETURN(const Tensor mu, inputs.Read("log_mu", log_mu));
  RILL_ASSIGN_OR_RETURN(Tensor advantage, inputs.MakeResult(out->advantage));
  RILL_ASSIGN_OR_RETURN(out->value_target,
                        inputs.MakeResult(out->value_target));
  out->advantage = std::move(advantage);
  return inputs.Make<VTraceLine>(
      [&]<typename T>(const StepArrays<T>& /*arrays*/) {
        return VTraceLine<T>{.gamma = options.gamma,
                             .rho_thresh = options.rho_thresh,
                             .c_thresh = options.c_thresh,
                             .log_pi = pi.data<T>(),
                             .log_mu = mu.data<T>(),
                             .advantage = out->advantage.data<T>(),
                             .target = out->value_target.data<T>()};
      });
}

absl::Status RewardToGo(const Tensor& reward, const Tensor& done, double gamma,
                        Tensor* returns, const Stream* stream) {
  constexpr absl::string_view kCaller = "RewardToGo";
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_ASSIGN_OR_RETURN(Inputs inputs, Inputs::Create(kCaller, reward, stream));
  RILL_RETURN_IF_ERROR(inputs.ReadDone({.done = done}));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  return inputs.Make<RewardToGoLine>(
      [&]<typename T>(const StepArrays<T>& arrays) {
        estimators_internal::RewardToGoLines(arrays, gamma, returns->data<T>());
      },
      [&]<typename T>(const StepArrays<T>& /*arrays*/) {
        return RewardToGoLine<T>{gamma, returns->data<T>()};
      });
}

absl::Status NStepReturn(const EstimatorSteps& steps, int64_t n_steps,
                         double gamma, Tensor* returns, const Stream* stream) {
  constexpr absl::string_view kCaller = "NStepReturn";
  if (n_steps < 1) {
    return InvalidArgument(kCaller, ": n_steps: got ", n_steps, ", want > 0");
  }
  RILL_RETURN_IF_ERROR(CheckFraction(kCaller, "gamma", gamma));
  RILL_ASSIGN_OR_RETURN(Inputs inputs,
                        Inputs::Create(kCaller, steps.reward, stream));
  RILL_RETURN_IF_ERROR(inputs.ReadSteps(steps));
  RILL_ASSIGN_OR_RETURN(*returns, inputs.MakeResult(*returns));
  return inputs.Make<NStepLine>(
      [&]<typename T>(const StepArrays<T>& /*arrays*/) {
        return NStepLine<T>{gamma, n_steps, returns->data<T>()};
      });
}

}  // namespace rill
