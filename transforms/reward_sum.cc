// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_sum.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "hwy/highway.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/steps/counter_kernels.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_work.h"
#include "rill/transforms/steps/masked_lanes.h"

namespace rill {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr absl::string_view kPlanSteps = "RewardSum::PlanSteps";

// A number a lane, or [agents, 1] of a group of several agents.
absl::StatusOr<LeafSpec> FindRewards(absl::string_view key,
                                     const TensorDictSpec& step) {
  const LeafSpec* const leaf = step.Find(key);
  const bool is_of_agents =
      leaf != nullptr && leaf->shape.rank() == 2 && leaf->shape[1] == 1;
  return is_of_agents ? transforms_internal::FindFloat(kPlanSteps, key, step)
                      : transforms_internal::FindReward(kPlanSteps, key, step);
}

// sums[i] = before[i] + rewards[i], in float32; i is a lane, or an agent of
// one.
template <typename Reward>
void AddRewards(absl::Span<const float> before, const BoundLeaf& rewards,
                absl::Span<float> sums) {
  const absl::Span<const Reward> values = rewards.As<Reward>();
  const auto add = [&]<typename D>(D d, size_t lane) {
    const auto reward = hn::LoadU(hn::Rebind<Reward, D>(), &values[lane]);
    const auto old = hn::LoadU(d, &before[lane]);
    if constexpr (sizeof(Reward) == sizeof(float)) {
      hn::StoreU(hn::Add(old, reward), d, &sums[lane]);
    } else {
      hn::StoreU(hn::Add(old, hn::DemoteTo(d, reward)), d, &sums[lane]);
    }
  };
  // As many floats as a vector of rewards has.
  const hn::Rebind<float, hn::ScalableTag<Reward>> d;
  size_t lane = 0;
  for (; lane + hn::Lanes(d) <= sums.size(); lane += hn::Lanes(d)) add(d, lane);
  for (; lane < sums.size(); ++lane) add(hn::CappedTag<float, 1>(), lane);
}

class RewardSumTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit RewardSumTransform(const RewardSum::Options& options)
      : reward_key_(options.reward_key), key_(options.sum_key) {}

  absl::string_view name() const override { return "RewardSum"; }
  OptionValues option_values() const override {
    return OptionValues().Text("reward_key", reward_key_).Text("sum_key", key_);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    const std::string reward_key = absl::StrCat("next/", reward_key_);
    const std::string next_key = absl::StrCat("next/", key_);
    RILL_ASSIGN_OR_RETURN(const LeafSpec reward, FindRewards(reward_key, step));
    StepPlan plan = {.spec = step};
    // The root first: OnReset and OnStep find the leaves at these places.
    for (const std::string& key : {key_, next_key}) {
      RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
          kPlanSteps, key, LeafSpec::Unbounded(DType::kFloat32, reward.shape),
          &plan));
    }
    plan.leaves.push_back(
        {.key = reward_key, .dtype = reward.dtype, .shape = reward.shape});
    return plan;
  }

  // Only the root. Below next the values of before the reset stay: they belong
  // to the step that ended the episode.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    const absl::Span<float> sums = leaves[0].As<float>();
    const size_t width = sums.size() / std::max<size_t>(mask.size(), 1);
    ForMaskedLanes(mask, [sums, width](size_t lane) {
      std::fill_n(&sums[lane * width], width, 0.0f);
    });
    return absl::OkStatus();
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const absl::Span<const float> before = leaves[0].As<float>();
    const absl::Span<float> sums = leaves[1].As<float>();
    if (leaves[2].dtype == DType::kFloat64) {
      AddRewards<double>(before, leaves[2], sums);
    } else {
      AddRewards<float>(before, leaves[2], sums);
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    return transforms_internal::FillLanes(0.0f, call.mask, leaves[0],
                                          call.stream);
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    return leaves[2].dtype() == DType::kFloat64 ? Launch<double>(call, leaves)
                                                : Launch<float>(call, leaves);
  }

 private:
  template <typename Reward>
  static absl::Status Launch(const Call& call, Tensors leaves) {
    const int64_t lanes = leaves[0].num_elements();
    const transforms_internal::RewardSumKernel<Reward> kernel = {
        .before = leaves[0].data<float>(),
        .rewards = leaves[2].data<Reward>(),
        .sums = leaves[1].data<float>(),
        .lanes = lanes};
    return LaunchKernel(kernel, GridFor(lanes), call.stream);
  }

  const std::string reward_key_;
  const std::string key_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> RewardSum::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.reward_key))
      << "RewardSum::Create: reward_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.sum_key))
      << "RewardSum::Create: sum_key";
  return std::make_unique<RewardSumTransform>(options);
}

}  // namespace rill
