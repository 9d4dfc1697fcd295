// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/value_estimators.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/stream.h"
#include "rill/estimators/agent_lines.h"
#include "rill/estimators/standardize_kernel.h"
#include "rill/estimators/value_estimates.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/rows/group_ends.h"
#include "rill/transforms/rows/pair_kernels.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

using estimators_internal::LinesOfAgent;
using estimators_internal::NumAgents;
using estimators_internal::StandardizeKernel;
using transforms_internal::DeviceWork;

// Numbers of a call beside those of EstimatorSteps.
using More = absl::Span<const Tensor>;
// With a stream on its device.
using Estimate = std::function<absl::Status(const EstimatorSteps&, More,
                                            Advantages*, const Stream*)>;

// The sum of fn(value), added as StandardizeKernel does.
template <typename T, typename Fn>
double Sum(absl::Span<const T> values, const Fn& fn) {
  constexpr size_t kThreads = StandardizeKernel<T>::kThreads;
  std::array<double, kThreads> sums = {};
  for (size_t first = 0; first < values.size(); first += kThreads) {
    const size_t count = std::min(kThreads, values.size() - first);
    for (size_t t = 0; t < count; ++t) sums[t] += fn(values[first + t]);
  }
  for (size_t half = kThreads / 2; half > 0; half /= 2) {
    for (size_t t = 0; t < half; ++t) sums[t] += sums[t + half];
  }
  return sums[0];
}

template <typename T>
void Standardize(const Tensor& tensor) {
  const absl::Span<T> values = absl::MakeSpan(
      tensor.data<T>(), static_cast<size_t>(tensor.num_elements()));
  const auto count = static_cast<double>(values.size());
  const auto sum = [&](const auto& fn) {
    return Sum(absl::Span<const T>(values), fn);
  };
  const double mean = sum([](T x) { return static_cast<double>(x); }) / count;
  const double squares = sum([mean](T value) {
    const double x = static_cast<double>(value) - mean;
    return x * x;
  });
  // With count - 1, as torch.std has it.
  const double deviation =
      std::max(StandardizeKernel<T>::kMinDeviation,
               std::sqrt(squares / std::max(count - 1, 1.0)));
  for (T& value : values) {
    value = static_cast<T>((static_cast<double>(value) - mean) / deviation);
  }
}

template <typename T>
absl::Status StandardizeOn(const Stream& stream, const Tensor& tensor) {
  return LaunchKernel(StandardizeKernel<T>{.values = tensor.data<T>(),
                                           .count = tensor.num_elements()},
                      {.blocks = 1, .threads = StandardizeKernel<T>::kThreads},
                      stream);
}

absl::Status Standardize(const Tensor& tensor, const Stream* stream) {
  // A mean of nothing would be NaN.
  if (tensor.num_elements() == 0) return absl::OkStatus();
  const bool is_float = tensor.dtype() == DType::kFloat32;
  if (stream != nullptr) {
    return is_float ? StandardizeOn<float>(*stream, tensor)
                    : StandardizeOn<double>(*stream, tensor);
  }
  if (is_float) {
    Standardize<float>(tensor);
  } else {
    Standardize<double>(tensor);
  }
  return absl::OkStatus();
}

// out = a - b.
template <typename T>
absl::Status Subtract(const Tensor& a, const Tensor& b, const Tensor& out,
                      const Stream* stream) {
  // The target is rounded by then, as where TorchRL subtracts.
  const transforms_internal::PairSumKernel<T> kernel = {
      .a = a.data<T>(),
      .sign = -1,
      .b = b.data<T>(),
      .out = out.data<T>(),
      .count = out.num_elements()};
  if (stream != nullptr) {
    return LaunchKernel(kernel, GridFor(kernel.count), *stream);
  }
  for (int64_t i = 0; i < kernel.count; ++i) {
    kernel.out[i] = kernel.a[i] - kernel.b[i];
  }
  return absl::OkStatus();
}

// The five estimators are one transform. They differ in their options, in the
// keys that they read beside the usual ones, and in the function that makes the
// numbers: an `Estimate` of value_estimates.h.
class ValueEstimator final : public BatchTransform {
 public:
  struct Parts {
    std::string name;
    OptionValues values;  // All but the keys.
    ValueKeys keys;
    std::vector<std::string> more_keys = {};
    bool standardizes = false;
    bool recurs = true;  // A step's numbers are made of those behind it.
    Estimate estimate;
  };

  explicit ValueEstimator(Parts parts) : parts_(std::move(parts)) {}

  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(Parts parts) {
    const std::string caller = absl::StrCat(parts.name, "::Create");
    std::vector<std::string> keys = {
        parts.keys.reward, parts.keys.value,     parts.keys.next_value,
        parts.keys.done,   parts.keys.advantage, parts.keys.value_target};
    keys.insert(keys.end(), parts.more_keys.begin(), parts.more_keys.end());
    // A transition without truncation may have one flag for both.
    if (parts.keys.terminated != parts.keys.done) {
      keys.push_back(parts.keys.terminated);
    }
    // A key twice would be read after it was written, or written twice.
    RILL_RETURN_IF_ERROR(transforms_internal::CheckKeys(caller, "keys", keys));
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckCanBeLeaves(caller, "keys", keys));
    // Bad numbers are found by a call with nothing.
    EstimatorSteps none;
    RILL_ASSIGN_OR_RETURN(none.reward, Tensor::Zeros(DType::kFloat32, {0, 1}));
    none.value = none.next_value = none.reward;
    RILL_ASSIGN_OR_RETURN(none.done, Tensor::Zeros(DType::kBool, {0, 1}));
    none.terminated = none.done;
    Advantages made;
    RILL_RETURN_IF_ERROR(
        parts.estimate(none, {none.reward, none.reward}, &made, nullptr))
        << caller;
    return std::make_unique<ValueEstimator>(std::move(parts));
  }

  absl::string_view name() const override { return parts_.name; }
  OptionValues option_values() const override {
    OptionValues values = parts_.values;
    const ValueKeys& keys = parts_.keys;
    return values.Text("keys.reward", keys.reward)
        .Text("keys.value", keys.value)
        .Text("keys.next_value", keys.next_value)
        .Text("keys.done", keys.done)
        .Text("keys.terminated", keys.terminated)
        .Text("keys.advantage", keys.advantage)
        .Text("keys.value_target", keys.value_target);
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    const LeafSpec* const reward = spec.Find(parts_.keys.reward);
    const int64_t agents =
        reward == nullptr ? 0 : NumAgents(parts_.keys.reward, reward->shape);
    if (agents == 0) return SpecOfLines(spec);
    for (const std::string& key : Numbers()) {
      const LeafSpec* const leaf = spec.Find(key);
      if (leaf == nullptr || leaf->shape == reward->shape) continue;
      return transforms_internal::Misfit(
          absl::StrCat(parts_.name, "::ForwardSpec"), key, *leaf,
          absl::StrCat("a number for each of ", agents, " agents, as \"",
                       parts_.keys.reward, "\" has"));
    }
    RILL_ASSIGN_OR_RETURN(
        const TensorDictSpec lines,
        estimators_internal::SpecOfAgent(spec, LeavesOfAgents(spec), agents));
    RILL_RETURN_IF_ERROR(SpecOfLines(lines).status());
    return SpecWithResults(spec, *reward);
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    const int64_t agents = NumAgents(parts_.keys.reward, *batch);
    return agents == 0 ? ForwardLines(batch, parts_.standardizes)
                       : ForwardAgents(agents, batch);
  }

 private:
  // The keys of leaves that are like the reward.
  std::vector<std::string> Numbers() const {
    std::vector<std::string> numbers = {parts_.keys.value,
                                        parts_.keys.next_value};
    numbers.insert(numbers.end(), parts_.more_keys.begin(),
                   parts_.more_keys.end());
    return numbers;
  }
  std::vector<std::string> LeavesOfAgents(const TensorDictSpec& rows) const {
    std::vector<std::string> keys = Numbers();
    keys.push_back(parts_.keys.reward);
    keys.push_back(parts_.keys.terminated);
    return estimators_internal::WithEnds(std::move(keys), parts_.keys.done,
                                         rows);
  }

  absl::StatusOr<TensorDictSpec> SpecWithResults(const TensorDictSpec& spec,
                                                 const LeafSpec& reward) const {
    TensorDictSpec after = spec;
    for (const std::string& key :
         {parts_.keys.advantage, parts_.keys.value_target}) {
      RILL_RETURN_IF_ERROR(
          after.Set(key, LeafSpec::Unbounded(reward.dtype, reward.shape)));
    }
    return after;
  }

  absl::StatusOr<TensorDictSpec> SpecOfLines(const TensorDictSpec& spec) const {
    const std::string caller = absl::StrCat(parts_.name, "::ForwardSpec");
    const ValueKeys& keys = parts_.keys;
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec reward,
        transforms_internal::GetReward(caller, keys.reward, spec));
    for (const std::string& key : Numbers()) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf,
                            transforms_internal::GetSpec(caller, key, spec));
      if (leaf.dtype == reward.dtype && leaf.shape == reward.shape) continue;
      return transforms_internal::Misfit(
          caller, key, leaf,
          absl::StrCat(DTypeName(reward.dtype), "[1], as \"", keys.reward,
                       "\" is"));
    }
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckHasEnds(caller, keys.done, spec));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
        caller, keys.reward, keys.done, spec));
    if (transforms_internal::GroupEndsOf(keys.reward, spec) !=
        transforms_internal::GroupEndsOf(keys.terminated, spec)) {
      return InvalidArgument(caller, ": \"", keys.reward, "\": got the key \"",
                             keys.terminated,
                             "\" of terminated, want that of its group");
    }
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlagAnywhere(
        caller, keys.terminated, spec));
    return SpecWithResults(spec, reward);
  }

  // A group of several agents: each agent's lines alone, then joined.
  absl::Status ForwardAgents(int64_t agents, TensorDict* batch) const {
    const std::string& caller = parts_.name;
    const ValueKeys& keys = parts_.keys;
    const Tensor& reward = *batch->Find(keys.reward);
    for (const std::string& key : Numbers()) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                            transforms_internal::GetLeaf(caller, key, *batch));
      RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
          caller, key, leaf, reward.dtype(), reward.shape()));
    }
    const std::vector<std::string> leaves =
        LeavesOfAgents(TensorDictSpec::Of(*batch));
    std::vector<Tensor> advantages, targets;
    for (int64_t agent = 0; agent < agents; ++agent) {
      RILL_ASSIGN_OR_RETURN(TensorDict lines,
                            LinesOfAgent(*batch, leaves, agents, agent));
      // Those of an earlier call are of all agents.
      for (const std::string& key : {keys.advantage, keys.value_target}) {
        RILL_RETURN_IF_ERROR(
            transforms_internal::CheckMaySet(caller, key, *batch));
        if (!lines.Contains(key)) continue;
        RILL_RETURN_IF_ERROR(lines.Delete(key));
      }
      RILL_RETURN_IF_ERROR(ForwardLines(&lines, /*standardizes=*/false));
      RILL_ASSIGN_OR_RETURN(advantages.emplace_back(),
                            lines.Get(keys.advantage));
      RILL_ASSIGN_OR_RETURN(targets.emplace_back(),
                            lines.Get(keys.value_target));
    }
    const int dim = batch->batch_shape().rank();
    RILL_ASSIGN_OR_RETURN(Tensor advantage, StackLeaves(advantages, dim));
    RILL_ASSIGN_OR_RETURN(Tensor target, StackLeaves(targets, dim));
    if (parts_.standardizes) {
      DeviceWork::Call work(&device_work_);
      const Stream* stream = nullptr;
      if (!advantage.is_host()) {
        RILL_RETURN_IF_ERROR(work.Begin(advantage.device())) << caller;
        stream = &work.stream();
      }
      RILL_RETURN_IF_ERROR(Standardize(advantage, stream)) << caller;
      if (stream != nullptr) {
        RILL_RETURN_IF_ERROR(work.End());
      }
    }
    RILL_RETURN_IF_ERROR(batch->Set(keys.advantage, std::move(advantage)));
    return batch->Set(keys.value_target, std::move(target));
  }

  absl::Status ForwardLines(TensorDict* batch, bool standardizes) const {
    const std::string& caller = parts_.name;
    RILL_RETURN_IF_ERROR(
        transforms_internal::NumSteps(caller, batch->batch_shape()).status());
    if (parts_.recurs) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckTimeIsLast(caller, *batch));
    }
    const ValueKeys& keys = parts_.keys;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
        caller, keys.reward, keys.done, *batch));
    const Shape shape = batch->batch_shape().Concat({1});
    EstimatorSteps steps;
    RILL_ASSIGN_OR_RETURN(steps.reward, transforms_internal::GetLeaf(
                                            caller, keys.reward, *batch));
    const DType dtype = steps.reward.dtype();
    // All lie where the reward does.
    DeviceWork::Call work(&device_work_);
    DeviceWork::Call* const call = steps.reward.is_host() ? nullptr : &work;
    const Stream* stream = nullptr;
    if (call != nullptr) {
      RILL_RETURN_IF_ERROR(call->Begin(steps.reward.device())) << caller;
      stream = &call->stream();
    }
    const auto read = [&](const std::string& key, DType type) {
      return call == nullptr ? transforms_internal::ReadLeaf(caller, key, type,
                                                             shape, *batch)
                             : transforms_internal::ReadDeviceLeaf(
                                   caller, key, type, shape, *batch, call);
    };
    // The reward says the dtype; all other numbers have to follow it.
    RILL_ASSIGN_OR_RETURN(steps.reward, read(keys.reward, dtype));
    RILL_ASSIGN_OR_RETURN(steps.value, read(keys.value, dtype));
    RILL_ASSIGN_OR_RETURN(steps.next_value, read(keys.next_value, dtype));
    RILL_ASSIGN_OR_RETURN(
        steps.done,
        parts_.recurs
            ? transforms_internal::ReadStops(caller, keys.done, *batch, call)
            : transforms_internal::ReadEnds(caller, keys.done, *batch, call));
    RILL_ASSIGN_OR_RETURN(steps.terminated,
                          read(keys.terminated, DType::kBool));
    std::vector<Tensor> more;
    for (const std::string& key : parts_.more_keys) {
      RILL_ASSIGN_OR_RETURN(more.emplace_back(), read(key, dtype));
    }
    for (const std::string* key : {&keys.advantage, &keys.value_target}) {
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckMaySet(caller, *key, *batch));
    }
    // Written in place where the batch has them from an earlier call.
    const auto write = [&](const std::string& key) {
      return call == nullptr
                 ? transforms_internal::WriteLeaf(key, dtype, shape, {}, batch)
                 : call->Take(dtype, shape);
    };
    Advantages made;
    RILL_ASSIGN_OR_RETURN(made.advantage, write(keys.advantage));
    RILL_ASSIGN_OR_RETURN(made.value_target, write(keys.value_target));
    RILL_RETURN_IF_ERROR(parts_.estimate(steps, more, &made, stream));
    if (standardizes) {
      RILL_RETURN_IF_ERROR(Standardize(made.advantage, stream)) << caller;
    }
    if (call != nullptr) {
      RILL_RETURN_IF_ERROR(batch->Set(keys.advantage, made.advantage));
      RILL_RETURN_IF_ERROR(batch->Set(keys.value_target, made.value_target));
      RILL_RETURN_IF_ERROR(call->End());
      if (tensordict_internal::checks_finite.load(std::memory_order_relaxed)) {
        RILL_RETURN_IF_ERROR(stream->Synchronize());
      }
    }
    // All leaves: what an estimate is spoiled by has a key of its own.
    constexpr absl::string_view kDims[] = {"lane", "step"};
    const auto rank = static_cast<size_t>(batch->batch_shape().rank());
    return CheckFiniteIfAsked(
        caller, *batch,
        rank > 2 ? DimNames() : absl::MakeConstSpan(kDims).subspan(2 - rank));
  }

  const Parts parts_;
  mutable DeviceWork device_work_{8};
};

// An estimate of returns as one of advantages.
Estimate OfReturns(
    std::function<absl::Status(const EstimatorSteps&, Tensor*, const Stream*)>
        returns) {
  return [returns = std::move(returns)](const EstimatorSteps& steps,
                                        More /*more*/, Advantages* out,
                                        const Stream* stream) -> absl::Status {
    RILL_RETURN_IF_ERROR(returns(steps, &out->value_target, stream));
    // The target is the return; the advantage is what it is above the
    // value.
    const Tensor& target = out->value_target;
    if (!out->advantage.is_valid()) {
      RILL_ASSIGN_OR_RETURN(out->advantage,
                            Tensor::Empty(target.dtype(), target.shape()));
    }
    return target.dtype() == DType::kFloat32
               ? Subtract<float>(target, steps.value, out->advantage, stream)
               : Subtract<double>(target, steps.value, out->advantage, stream);
  };
}

// An estimator whose only number is gamma.
template <typename Options, typename Return>
absl::StatusOr<std::unique_ptr<BatchTransform>> MakeDiscounted(
    absl::string_view name, const Options& options, bool recurs, Return make) {
  return ValueEstimator::Create(
      {.name = std::string(name),
       .values = OptionValues().Double("gamma", options.gamma),
       .keys = options.keys,
       .recurs = recurs,
       .estimate = OfReturns([gamma = options.gamma, make](
                                 const EstimatorSteps& steps, Tensor* returns,
                                 const Stream* stream) {
         return make(steps, gamma, returns, stream);
       })});
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> GAE::Create(
    const Options& options) {
  return ValueEstimator::Create(
      {.name = "GAE",
       .values = OptionValues()
                     .Double("gamma", options.gamma)
                     .Double("lmbda", options.lmbda)
                     .Bool("average_gae", options.average_gae),
       .keys = options.keys,
       .standardizes = options.average_gae,
       .recurs = options.lmbda > 0,
       .estimate = [gamma = options.gamma, lmbda = options.lmbda](
                       const EstimatorSteps& steps, More /*more*/,
                       Advantages* out, const Stream* stream) {
         return GaeAdvantage(steps, gamma, lmbda, out, stream);
       }});
}

absl::StatusOr<std::unique_ptr<BatchTransform>> TD0Estimator::Create(
    const Options& options) {
  return MakeDiscounted("TD0Estimator", options, /*recurs=*/false, Td0Return);
}

absl::StatusOr<std::unique_ptr<BatchTransform>> TD1Estimator::Create(
    const Options& options) {
  return MakeDiscounted("TD1Estimator", options, /*recurs=*/true, Td1Return);
}

absl::StatusOr<std::unique_ptr<BatchTransform>> TDLambdaEstimator::Create(
    const Options& options) {
  return ValueEstimator::Create(
      {.name = "TDLambdaEstimator",
       .values = OptionValues()
                     .Double("gamma", options.gamma)
                     .Double("lmbda", options.lmbda),
       .keys = options.keys,
       .recurs = options.lmbda > 0,
       .estimate = OfReturns([gamma = options.gamma, lmbda = options.lmbda](
                                 const EstimatorSteps& steps, Tensor* returns,
                                 const Stream* stream) {
         return TdLambdaReturn(steps, gamma, lmbda, returns, stream);
       })});
}

absl::StatusOr<std::unique_ptr<BatchTransform>> VTrace::Create(
    const Options& options) {
  const VTraceOptions numbers = {.gamma = options.gamma,
                                 .rho_thresh = options.rho_thresh,
                                 .c_thresh = options.c_thresh};
  return ValueEstimator::Create(
      {.name = "VTrace",
       .values = OptionValues()
                     .Double("gamma", options.gamma)
                     .Double("rho_thresh", options.rho_thresh)
                     .Double("c_thresh", options.c_thresh)
                     .Bool("average_adv", options.average_adv)
                     .Text("log_prob_key", options.log_prob_key)
                     .Text("sample_log_prob_key", options.sample_log_prob_key),
       .keys = options.keys,
       .more_keys = {options.log_prob_key, options.sample_log_prob_key},
       .standardizes = options.average_adv,
       .estimate = [numbers](const EstimatorSteps& steps, More more,
                             Advantages* out, const Stream* stream) {
         return VTraceAdvantage(steps, more[0], more[1], numbers, out, stream);
       }});
}

}  // namespace rill
