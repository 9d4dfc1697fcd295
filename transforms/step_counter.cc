// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/step_counter.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "hwy/highway.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/steps/counter_kernels.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_work.h"
#include "rill/transforms/steps/masked_lanes.h"

namespace rill {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr absl::string_view kPlanSteps = "StepCounter::PlanSteps";

std::string Next(absl::string_view key) { return absl::StrCat("next/", key); }

class StepCounterTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit StepCounterTransform(const StepCounter::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "StepCounter"; }
  OptionValues option_values() const override {
    OptionValues values;
    if (options_.max_steps.has_value()) {
      values.Int("max_steps", *options_.max_steps);
    } else {
      values.None("max_steps");
    }
    values.Text("step_count_key", options_.step_count_key);
    values.Text("truncated_key", options_.truncated_key);
    values.Text("done_key", options_.done_key);
    return values.Bool("update_done", options_.update_done);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    // The root first: the calls find the leaves at the places kCount and
    // kNextCount.
    for (const std::string& key :
         {options_.step_count_key, Next(options_.step_count_key)}) {
      RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
          kPlanSteps, key, LeafSpec::Unbounded(DType::kInt64, {1}), &plan));
    }
    // Without a limit no flag is touched, so the environment may have none.
    if (!options_.max_steps.has_value()) return plan;
    RILL_RETURN_IF_ERROR(AddFlag(Next(options_.truncated_key), &plan));
    if (options_.update_done) {
      RILL_RETURN_IF_ERROR(AddFlag(Next(options_.done_key), &plan));
    }
    return plan;
  }

  // Only the root: the count below next is that of the step that ended the
  // episode.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    const absl::Span<int64_t> counts = leaves[kCount].As<int64_t>();
    ForMaskedLanes(mask, [counts](size_t lane) { counts[lane] = 0; });
    return absl::OkStatus();
  }

  // One pass over the counts also finds whether any lane has got to the limit.
  // The flags are read in the rare second pass only.
  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const absl::Span<const int64_t> before = leaves[kCount].As<int64_t>();
    const absl::Span<int64_t> counts = leaves[kNextCount].As<int64_t>();
    const int64_t limit = options_.max_steps.value_or(INT64_MAX);
    // Steps that are left: below zero where a count has got to the limit. It
    // wraps to that too for a count past the largest number, and for one far
    // below zero, so the second pass counts and compares exactly.
    const auto left = [&]<typename D>(D d, size_t lane) {
      const auto count = hn::Add(hn::LoadU(d, &before[lane]), hn::Set(d, 1));
      hn::StoreU(count, d, &counts[lane]);
      return hn::Sub(hn::Set(d, limit - 1), count);
    };
    const hn::ScalableTag<int64_t> d;
    auto all_left = hn::Zero(d);  // The sign is set where any of them is.
    size_t lane = 0;
    for (; lane + hn::Lanes(d) <= counts.size(); lane += hn::Lanes(d)) {
      all_left = hn::Or(all_left, left(d, lane));
    }
    const hn::CappedTag<int64_t, 1> one;
    auto last_left = hn::Zero(one);
    for (; lane < counts.size(); ++lane) {
      last_left = hn::Or(last_left, left(one, lane));
    }
    // Most steps end no episode.
    if (hn::AllFalse(d, hn::Lt(all_left, hn::Zero(d))) &&
        hn::AllFalse(one, hn::Lt(last_left, hn::Zero(one)))) {
      return absl::OkStatus();
    }
    // A count at the largest number stays there.
    for (lane = 0; lane < counts.size(); ++lane) {
      if (before[lane] == INT64_MAX) counts[lane] = INT64_MAX;
    }
    // The flags that the environment has set stay.
    for (const BoundLeaf& flag : leaves.subspan(kFlags)) {
      const absl::Span<bool> flags = flag.As<bool>();
      for (lane = 0; lane < counts.size(); ++lane) {
        flags[lane] |= counts[lane] >= limit;
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    return transforms_internal::FillLanes(int64_t{0}, call.mask, leaves[kCount],
                                          call.stream);
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    const int64_t lanes = leaves[kCount].num_elements();
    transforms_internal::StepCountKernel kernel = {
        .before = leaves[kCount].data<int64_t>(),
        .counts = leaves[kNextCount].data<int64_t>(),
        .limit = options_.max_steps.value_or(INT64_MAX),
        .lanes = lanes};
    for (const Tensor& flag : leaves.subspan(kFlags)) {
      kernel.flags[kernel.num_flags++] = flag.data<uint8_t>();
    }
    return LaunchKernel(kernel, GridFor(lanes), call.stream);
  }

 private:
  // Places in the plan's leaves.
  static constexpr size_t kCount = 0;
  static constexpr size_t kNextCount = 1;
  static constexpr size_t kFlags = 2;

  static absl::Status AddFlag(const std::string& key, StepPlan* plan) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckIsFlag(kPlanSteps, key, plan->spec));
    plan->leaves.push_back({.key = key,
                            .dtype = DType::kBool,
                            .shape = {1},
                            .use = LeafUse::kUpdate});
    return absl::OkStatus();
  }

  const StepCounter::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> StepCounter::Create(
    const Options& options) {
  if (options.max_steps.has_value() && *options.max_steps < 1) {
    return InvalidArgument("StepCounter::Create: max_steps: got ",
                           *options.max_steps,
                           ", want > 0, or none to count only");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.step_count_key))
      << "StepCounter::Create: step_count_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.truncated_key))
      << "StepCounter::Create: truncated_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key))
      << "StepCounter::Create: done_key";
  return std::make_unique<StepCounterTransform>(options);
}

}  // namespace rill
