// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_sum.h"

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kOnStep = "RewardSum::OnStep";

template <typename Reward>
void AddRewards(absl::Span<const float> before, const Tensor& rewards,
                absl::Span<float> sums) {
  const Reward* values = rewards.data<Reward>();
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = before[i] + static_cast<float>(values[i]);
  }
}

class RewardSumTransform final : public Transform {
 public:
  explicit RewardSumTransform(const RewardSum::Options& options)
      : reward_key_(options.reward_key),
        key_(options.sum_key),
        next_key_(absl::StrCat("next/", options.sum_key)),
        next_reward_key_(absl::StrCat("next/", options.reward_key)) {}

  absl::string_view name() const override { return "RewardSum"; }
  OptionValues option_values() const override {
    return OptionValues().Text("reward_key", reward_key_).Text("sum_key", key_);
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask,
                       TensorDict* root) override {
    return transforms_internal::ResetLeaf("RewardSum::OnReset", key_,
                                          DType::kFloat32, mask, root);
  }

  absl::Status OnStep(TensorDict* step) override {
    const Shape shape = step->batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(const Tensor before,
                          transforms_internal::ReadLeaf(kOnStep, key_, *step));
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
        kOnStep, key_, before, DType::kFloat32, shape));
    RILL_ASSIGN_OR_RETURN(
        const Tensor reward,
        transforms_internal::ReadLeaf(kOnStep, next_reward_key_, *step));
    const bool is_double = reward.dtype() == DType::kFloat64;
    RILL_RETURN_IF_ERROR(transforms_internal::CheckLeaf(
        kOnStep, next_reward_key_, reward,
        is_double ? DType::kFloat64 : DType::kFloat32, shape));
    RILL_ASSIGN_OR_RETURN(const Tensor after,
                          transforms_internal::FreshLeaf(
                              next_key_, DType::kFloat32, shape, step));
    RILL_ASSIGN_OR_RETURN(absl::Span<const float> from, before.Flat<float>());
    RILL_ASSIGN_OR_RETURN(absl::Span<float> sums, after.Flat<float>());
    if (is_double) {
      AddRewards<double>(from, reward, sums);
    } else {
      AddRewards<float>(from, reward, sums);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override {
    RILL_ASSIGN_OR_RETURN(const LeafSpec reward,
                          transforms_internal::FindSpec(
                              "RewardSum::StepSpec", next_reward_key_, spec));
    const bool is_float =
        reward.dtype == DType::kFloat32 || reward.dtype == DType::kFloat64;
    if (!is_float || reward.shape != Shape({1})) {
      return absl::InvalidArgumentError(
          absl::StrCat("RewardSum::StepSpec: \"", next_reward_key_, "\": got ",
                       reward.ToString(), ", want float32[1] or float64[1]"));
    }
    TensorDictSpec after = spec;
    const LeafSpec sum = LeafSpec::Unbounded(DType::kFloat32, {1});
    RILL_RETURN_IF_ERROR(after.Set(key_, sum));
    RILL_RETURN_IF_ERROR(after.Set(next_key_, sum));
    return after;
  }

 private:
  const std::string reward_key_;
  const std::string key_;
  const std::string next_key_;
  const std::string next_reward_key_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transform>> RewardSum::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.reward_key))
      << "RewardSum::Create: reward_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.sum_key))
      << "RewardSum::Create: sum_key";
  return std::make_unique<RewardSumTransform>(options);
}

}  // namespace rill
