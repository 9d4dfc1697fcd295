// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/return_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/statistics/exact_norm.h"
#include "rill/transforms/statistics/vec_norm_statistics.h"
#include "rill/transforms/statistics/vec_norm_sums.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_work.h"
#include "rill/transforms/steps/masked_lanes.h"

namespace rill {
namespace {

using transforms_internal::AddRows;
using transforms_internal::AreSummable;
using transforms_internal::DeviceWork;
using transforms_internal::kMostVecNormRows;
using transforms_internal::kMostVecNormValue;
using transforms_internal::kReturnPrior;
using transforms_internal::kVecNormBlock;
using transforms_internal::kVecNormWords;
using transforms_internal::Merge;
using transforms_internal::VecNormElement;
using transforms_internal::VecNormSumsView;

constexpr absl::string_view kSums = "returns";
constexpr absl::string_view kLanes = "lane_returns";

// Calls fn(first, rows) for blocks of up to kVecNormBlock numbers, where `rows`
// count from `first`.
template <typename Fn>
void ForBlocks(size_t count, const Fn& fn) {
  size_t rows[kVecNormBlock];
  std::iota(rows, rows + std::min(count, kVecNormBlock), size_t{0});
  for (size_t first = 0; first < count; first += kVecNormBlock) {
    fn(first,
       absl::MakeConstSpan(rows, std::min(count - first, kVecNormBlock)));
  }
}

class ReturnScalingTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit ReturnScalingTransform(const ReturnScaling::Options& options)
      : options_(options),
        reward_key_(absl::StrCat("next/", options.reward_key)) {}

  absl::string_view name() const override { return "ReturnScaling"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Text("reward_key", options_.reward_key);
    values.Double("gamma", options_.gamma).Double("eps", options_.eps);
    return values.Bool("frozen", options_.frozen);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    RILL_ASSIGN_OR_RETURN(const LeafSpec reward,
                          transforms_internal::FindReward(
                              "ReturnScaling::PlanSteps", reward_key_, step));
    StepPlan plan = {.spec = step, .statistics = {std::string(kSums)}};
    RILL_RETURN_IF_ERROR(plan.spec.Set(
        reward_key_, LeafSpec::Unbounded(reward.dtype, reward.shape)));
    plan.leaves.push_back({.key = reward_key_,
                           .dtype = reward.dtype,
                           .shape = reward.shape,
                           .use = LeafUse::kUpdate});
    ReturnScaling::Options frozen = options_;
    frozen.frozen = true;
    plan.frozen = std::make_shared<ReturnScalingTransform>(frozen);
    return plan;
  }

  absl::StatusOr<TensorDict> InitialState(int64_t lanes) const override {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(Tensor sums,
                          Tensor::Zeros(DType::kInt64, {1 + kVecNormWords}));
    RILL_RETURN_IF_ERROR(state.Set(kSums, std::move(sums)));
    RILL_ASSIGN_OR_RETURN(Tensor returns,
                          Tensor::Zeros(DType::kFloat64, {lanes}));
    RILL_RETURN_IF_ERROR(state.Set(kLanes, std::move(returns)));
    return state;
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves /*leaves*/,
                       TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(Tensor returns,
                          Take(*state, kLanes, DType::kFloat64,
                               {static_cast<int64_t>(mask.size())}));
    double* const numbers = returns.data<double>();
    ForMaskedLanes(mask, [numbers](size_t lane) { numbers[lane] = 0; });
    return state->Set(kLanes, std::move(returns));
  }

  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    return leaves[0].dtype == DType::kFloat32
               ? Scale(leaves[0].As<float>(), state)
               : Scale(leaves[0].As<double>(), state);
  }

  bool has_faults() const override { return true; }
  absl::Status FaultOf(int64_t fault) const override {
    return transforms_internal::NormError(name(), fault);
  }

  absl::Status OnDeviceReset(const Call& call, Tensors /*leaves*/,
                             TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kLanes));
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    RILL_ASSIGN_OR_RETURN(Tensor returns,
                          work.Take(before.dtype(), before.shape()));
    work.Keep(before);
    RILL_RETURN_IF_ERROR(returns.CopyFromAsync(before, call.stream));
    RILL_RETURN_IF_ERROR(
        transforms_internal::FillLanes(0.0, call.mask, returns, call.stream));
    RILL_RETURN_IF_ERROR(work.End());
    return state->Set(kLanes, std::move(returns));
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor returns, state->Get(kLanes));
    RILL_ASSIGN_OR_RETURN(const Tensor sums, state->Get(kSums));
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    RILL_ASSIGN_OR_RETURN(Tensor new_returns,
                          work.Take(returns.dtype(), returns.shape()));
    RILL_ASSIGN_OR_RETURN(Tensor new_sums,
                          work.Take(sums.dtype(), sums.shape()));
    work.Keep(returns);
    work.Keep(sums);
    RILL_RETURN_IF_ERROR(
        transforms_internal::ScaleReturns({.rewards = leaves[0],
                                           .gamma = options_.gamma,
                                           .eps = options_.eps,
                                           .learns = !options_.frozen,
                                           .returns = returns,
                                           .new_returns = new_returns,
                                           .sums = sums,
                                           .new_sums = new_sums},
                                          call));
    RILL_RETURN_IF_ERROR(work.End());
    RILL_RETURN_IF_ERROR(state->Set(kLanes, std::move(new_returns)));
    return state->Set(kSums, std::move(new_sums));
  }

 private:
  // A copy of a state's tensor, to be written and set in its place. The layout
  // is checked at each call: a state may come from a file.
  absl::StatusOr<Tensor> Take(const TensorDict& state, absl::string_view key,
                              DType dtype, const Shape& shape) const {
    const Tensor* const before = state.Find(key);
    if (before == nullptr || !before->is_host() || before->dtype() != dtype ||
        !before->is_contiguous() || before->shape() != shape) {
      return FailedPrecondition("ReturnScaling: state: \"", key,
                                "\": want contiguous ", DTypeName(dtype),
                                shape.ToString(),
                                " in host memory; start with InitialState");
    }
    return spare_.Copy(*before);
  }

  template <typename T>
  absl::Status Scale(absl::Span<T> rewards, TensorDict* state) const {
    const auto lanes = static_cast<int64_t>(rewards.size());
    RILL_ASSIGN_OR_RETURN(Tensor returns,
                          Take(*state, kLanes, DType::kFloat64, {lanes}));
    RILL_ASSIGN_OR_RETURN(
        Tensor sums, Take(*state, kSums, DType::kInt64, {1 + kVecNormWords}));
    if (!VecNormSumsView(sums).IsSound()) {
      return FailedPrecondition("ReturnScaling: state: \"", kSums,
                                "\": got numbers that no rows have, want the "
                                "sums of some; start with InitialState");
    }
    double* const numbers = returns.data<double>();
    for (size_t lane = 0; lane < rewards.size(); ++lane) {
      numbers[lane] =
          numbers[lane] * options_.gamma + static_cast<double>(rewards[lane]);
    }
    if (!options_.frozen) {
      RILL_RETURN_IF_ERROR(Learn(numbers, lanes, VecNormSumsView(sums)));
    }
    const VecNormElement all = Merge(kReturnPrior, VecNormSumsView(sums).At(0));
    const double deviation = std::sqrt(all.squares / all.weight + options_.eps);
    for (T& reward : rewards) {
      reward = static_cast<T>(static_cast<double>(reward) / deviation);
    }
    RILL_RETURN_IF_ERROR(state->Set(kLanes, std::move(returns)));
    return state->Set(kSums, std::move(sums));
  }

  static absl::Status Learn(const double* returns, int64_t lanes,
                            const VecNormSumsView& sums) {
    bool are_summable = true;
    ForBlocks(static_cast<size_t>(lanes),
              [&](size_t first, absl::Span<const size_t> rows) {
                are_summable &= AreSummable(returns + first, /*n=*/1, rows);
              });
    if (!are_summable) {
      return InvalidArgument(
          "ReturnScaling: got a return that is not finite or beyond +-",
          kMostVecNormValue,
          ", want rewards to learn from; the statistics stay");
    }
    if (lanes > kMostVecNormRows - *sums.rows) {
      return FailedPrecondition("ReturnScaling: got ", lanes, " rows after ",
                                *sums.rows, ", want at most ", kMostVecNormRows,
                                "; the statistics stay");
    }
    ForBlocks(static_cast<size_t>(lanes),
              [&](size_t first, absl::Span<const size_t> rows) {
                AddRows(returns + first, /*n=*/1, rows, sums.sums);
              });
    *sums.rows += lanes;
    return absl::OkStatus();
  }

  const ReturnScaling::Options options_;
  const std::string reward_key_;
  mutable transforms_internal::SpareTensors spare_{8};
  mutable DeviceWork device_work_{8};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> ReturnScaling::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "ReturnScaling::Create";
  RILL_RETURN_IF_ERROR(CheckKey(options.reward_key))
      << kCreate << ": reward_key";
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    return InvalidArgument(kCreate, ": gamma: got ", options.gamma,
                           ", want [0, 1]");
  }
  if (!(options.eps > 0) || !std::isfinite(options.eps)) {
    return InvalidArgument(kCreate, ": eps: got ", options.eps, ", want > 0");
  }
  return std::make_unique<ReturnScalingTransform>(options);
}

}  // namespace rill
