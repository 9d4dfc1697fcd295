// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/units/n_step_returns.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/units/unit_input.h"

namespace rill {
namespace {

using transforms_internal::ChangedLeaf;
using transforms_internal::InputLeaf;
using transforms_internal::OutputLeaf;

constexpr absl::string_view kPlanReads = "NStepReturns::PlanReads";
constexpr absl::string_view kBatchSpec = "NStepReturns::BatchSpec";
constexpr absl::string_view kApply = "NStepReturns::Apply";
constexpr int64_t kMaxSteps = int64_t{1} << 20;

class NStepReturnsTransform final : public UnitTransform {
 public:
  explicit NStepReturnsTransform(const NStepReturns::Options& options)
      : options_(options) {
    double power = 1;
    for (int64_t i = 0; i <= options.num_steps; ++i) {
      powers_.push_back(power);
      float_powers_.push_back(static_cast<float>(power));
      power *= options.gamma;
    }
  }

  absl::string_view name() const override { return "NStepReturns"; }

  absl::StatusOr<Reads> PlanReads(const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kPlanReads, rows));
    Reads reads;
    reads.context.resize(2);
    std::vector<std::string>& summed = reads.context[0].apart;
    summed = options_.reward_keys;
    for (const std::string* flag : Flags()) {
      if (rows.Find(*flag) != nullptr) summed.push_back(*flag);
    }
    for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
      const bool is_last =
          transforms_internal::IsNext(leaf.key) &&
          std::find(summed.begin(), summed.end(), leaf.key) == summed.end();
      (is_last ? reads.context[1] : reads.rows).batch.push_back(leaf.key);
    }
    return reads;
  }

  absl::StatusOr<TensorDictSpec> BatchSpec(
      const TensorDictSpec& rows) const override {
    RILL_RETURN_IF_ERROR(CheckRows(kBatchSpec, rows));
    TensorDictSpec batch = rows;
    for (const std::string& key : options_.reward_keys) {
      LeafSpec sum = *rows.Find(key);
      if (options_.num_steps > 1) {
        sum = LeafSpec::Unbounded(sum.dtype, sum.shape);
      }
      RILL_RETURN_IF_ERROR(batch.Set(key, sum));
    }
    RILL_RETURN_IF_ERROR(
        batch.Set(options_.steps_key,
                  LeafSpec::Bounded(DType::kInt64, {1}, 1,
                                    static_cast<double>(options_.num_steps))));
    RILL_RETURN_IF_ERROR(batch.Set(
        options_.gamma_key, LeafSpec::Bounded(DType::kFloat32, {1}, 0, 1)));
    return batch;
  }

  absl::Status Apply(const SamplePlan& plan, const TensorDict& rows,
                     absl::Span<const TensorDict> context,
                     TensorDict* batch) const override {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckInput(kApply, plan, 2, rows,
                                                         context, *batch));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOneRowADraw(kApply, plan));
    RILL_RETURN_IF_ERROR(CheckWindows(plan));
    const SamplePlan::Context& window = plan.context[0];
    RILL_ASSIGN_OR_RETURN(absl::Span<const int64_t> steps,
                          CountSteps(window, context[0], batch));
    for (const std::string& key : options_.reward_keys) {
      RILL_RETURN_IF_ERROR(Sum(key, window, context[0], steps, batch));
    }
    for (const std::string* key : Flags()) {
      RILL_RETURN_IF_ERROR(TakeFlags(*key, window, context[0], steps, batch));
    }
    return absl::OkStatus();
  }

 private:
  std::array<const std::string*, 3> Flags() const {
    return {&options_.terminated_key, &options_.truncated_key,
            &options_.done_key};
  }

  absl::Status CheckRows(absl::string_view caller,
                         const TensorDictSpec& rows) const {
    for (const std::string& key : options_.reward_keys) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec reward,
                            transforms_internal::FindSpec(caller, key, rows));
      if (reward.dtype != DType::kFloat32 && reward.dtype != DType::kFloat64) {
        return absl::InvalidArgumentError(
            absl::StrCat(caller, ": \"", key, "\": got ", reward.ToString(),
                         ", want float32 or float64"));
      }
    }
    for (const std::string* flag : Flags()) {
      if (rows.Find(*flag) == nullptr) continue;
      RILL_RETURN_IF_ERROR(
          transforms_internal::CheckIsFlag(caller, *flag, rows));
    }
    for (const std::string& key : {options_.steps_key, options_.gamma_key}) {
      RILL_RETURN_IF_ERROR(transforms_internal::CheckIsNew(caller, key, rows));
    }
    return absl::OkStatus();
  }

  // That no window is longer than n, and that the second list is the last rows
  // of the first.
  absl::Status CheckWindows(const SamplePlan& plan) const {
    const SamplePlan::Context& window = plan.context[0];
    const SamplePlan::Context& last = plan.context[1];
    bool is_right = window.mask.empty() && last.mask.empty() &&
                    last.rows.size() == plan.draws.size();
    size_t i = 0;
    for (size_t draw = 0; is_right && draw < plan.draws.size(); ++draw) {
      const size_t begin = i;
      const int64_t segment = static_cast<int64_t>(draw);
      while (i < window.rows.size() && window.segments[i] == segment) ++i;
      is_right = static_cast<int64_t>(i - begin) < options_.num_steps &&
                 last.segments[draw] == segment &&
                 last.rows[draw] ==
                     (i == begin ? plan.draws[draw].slot : window.rows[i - 1]);
    }
    if (is_right) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(kApply, ": plan: got ", window.rows.size(), " rows and ",
                     last.rows.size(), " last ones for ", plan.draws.size(),
                     " draws, want windows of at most ", options_.num_steps,
                     " steps, the last row of each, and no mask"));
  }

  // How many steps each window has, up to the first that is terminated; with
  // the discounts.
  absl::StatusOr<absl::Span<const int64_t>> CountSteps(
      const SamplePlan::Context& window, const TensorDict& context,
      TensorDict* batch) const {
    const int64_t n = batch->batch_shape()[0];
    const std::string* stop_key = &options_.terminated_key;
    if (batch->Find(*stop_key) == nullptr) stop_key = &options_.done_key;
    Tensor own;
    Tensor behind;
    const bool can_stop = batch->Find(*stop_key) != nullptr;
    if (can_stop) {
      RILL_ASSIGN_OR_RETURN(
          own, InputLeaf(kApply, *stop_key, DType::kBool, {n, 1}, *batch));
      RILL_ASSIGN_OR_RETURN(
          behind, InputLeaf(kApply, *stop_key, DType::kBool,
                            context.batch_shape().Concat({1}), context));
    }
    RILL_ASSIGN_OR_RETURN(
        const Tensor steps,
        OutputLeaf(options_.steps_key, DType::kInt64, {n, 1}, batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor gammas,
        OutputLeaf(options_.gamma_key, DType::kFloat32, {n, 1}, batch));
    size_t i = 0;
    for (int64_t draw = 0; draw < n; ++draw) {
      int64_t count = 1;
      bool is_over = can_stop && own.data<uint8_t>()[draw] != 0;
      for (; i < window.segments.size() && window.segments[i] == draw; ++i) {
        if (is_over) continue;
        ++count;
        is_over = can_stop && behind.data<uint8_t>()[i] != 0;
      }
      steps.data<int64_t>()[draw] = count;
      gammas.data<float>()[draw] = float_powers_[static_cast<size_t>(count)];
    }
    return steps.Flat<int64_t>();
  }

  absl::Status Sum(absl::string_view key, const SamplePlan::Context& window,
                   const TensorDict& context, absl::Span<const int64_t> steps,
                   TensorDict* batch) const {
    RILL_ASSIGN_OR_RETURN(const Tensor own, transforms_internal::WritableLeaf(
                                                kApply, key, batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor behind,
        InputLeaf(kApply, key, own.dtype(),
                  context.batch_shape().Concat(own.shape().Suffix(1)),
                  context));
    if (own.dtype() == DType::kFloat32) {
      SumRows<float>(window, float_powers_, behind, steps, own);
    } else if (own.dtype() == DType::kFloat64) {
      SumRows<double>(window, powers_, behind, steps, own);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(kApply, ": \"", key, "\": got ", DTypeName(own.dtype()),
                       ", want float32 or float64"));
    }
    return absl::OkStatus();
  }

  // The product of two floats is exact in double. This file is compiled without
  // contraction, so that those of doubles are rounded everywhere alike.
  template <typename T>
  static void SumRows(const SamplePlan::Context& window,
                      const std::vector<T>& powers, const Tensor& behind,
                      absl::Span<const int64_t> steps, const Tensor& own) {
    if (steps.empty()) return;
    const int64_t width =
        own.num_elements() / static_cast<int64_t>(steps.size());
    T* out = own.data<T>();
    size_t i = 0;
    for (size_t draw = 0; draw < steps.size(); ++draw, out += width) {
      const T* rewards = behind.data<T>() + static_cast<int64_t>(i) * width;
      for (int64_t e = 0; e < width; ++e) {
        double sum = out[e];
        for (int64_t k = 1; k < steps[draw]; ++k) {
          sum += static_cast<double>(powers[static_cast<size_t>(k)]) *
                 static_cast<double>(rewards[(k - 1) * width + e]);
        }
        out[e] = static_cast<T>(sum);
      }
      const int64_t segment = static_cast<int64_t>(draw);
      while (i < window.segments.size() && window.segments[i] == segment) ++i;
    }
  }

  static absl::Status TakeFlags(absl::string_view key,
                                const SamplePlan::Context& window,
                                const TensorDict& context,
                                absl::Span<const int64_t> steps,
                                TensorDict* batch) {
    if (batch->Find(key) == nullptr) return absl::OkStatus();
    const int64_t n = batch->batch_shape()[0];
    RILL_ASSIGN_OR_RETURN(
        const Tensor own,
        ChangedLeaf(kApply, key, DType::kBool, {n, 1}, batch));
    RILL_ASSIGN_OR_RETURN(
        const Tensor behind,
        InputLeaf(kApply, key, DType::kBool, context.batch_shape().Concat({1}),
                  context));
    size_t i = 0;
    for (int64_t draw = 0; draw < n; ++draw) {
      const size_t count = static_cast<size_t>(steps[draw]);
      if (count > 1) {
        own.raw_data()[draw] = behind.raw_data()[i + count - 2];
      }
      while (i < window.segments.size() && window.segments[i] == draw) ++i;
    }
    return absl::OkStatus();
  }

  const NStepReturns::Options options_;
  std::vector<double> powers_;  // gamma^0 ... gamma^n.
  std::vector<float> float_powers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnitTransform>> NStepReturns::Create(
    const Options& options) {
  if (options.num_steps < 1 || options.num_steps > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("NStepReturns::Create: num_steps: got ", options.num_steps,
                     ", want 1 .. ", kMaxSteps));
  }
  if (!(options.gamma > 0 && options.gamma <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "NStepReturns::Create: gamma: got ", options.gamma, ", want (0, 1]"));
  }
  if (options.reward_keys.empty()) {
    return absl::InvalidArgumentError(
        "NStepReturns::Create: reward_keys: got none, want at least one");
  }
  std::vector<std::string> keys = options.reward_keys;
  for (const std::string* key :
       {&options.terminated_key, &options.truncated_key, &options.done_key,
        &options.steps_key, &options.gamma_key}) {
    keys.push_back(*key);
  }
  std::set<std::string> seen;
  for (const std::string& key : keys) {
    RILL_RETURN_IF_ERROR(CheckKey(key)) << "NStepReturns::Create: key";
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "NStepReturns::Create: got the key \"", key, "\" twice, want once"));
    }
  }
  return std::make_unique<NStepReturnsTransform>(options);
}

}  // namespace rill
