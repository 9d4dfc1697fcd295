// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/reward_scaling.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

class RewardScalingTransform final : public Transform {
 public:
  explicit RewardScalingTransform(const RewardScaling::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "RewardScaling"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Double("scale", options_.scale)
        .Double("loc", options_.loc)
        .Bool("standard_normal", options_.standard_normal)
        .Text("key", options_.key)
        .Bool("on_forward", options_.on_forward)
        .Bool("on_step", options_.on_step);
  }

  absl::Status Forward(TensorDict* batch) override {
    if (!options_.on_forward) return absl::OkStatus();
    constexpr absl::string_view kForward = "RewardScaling::Forward";
    RILL_ASSIGN_OR_RETURN(
        const Tensor reward,
        transforms_internal::WritableLeaf(kForward, options_.key, batch));
    return ScaleAll(kForward, reward);
  }

  absl::Status OnStep(TensorDict* step) override {
    if (!options_.on_step) return absl::OkStatus();
    constexpr absl::string_view kOnStep = "RewardScaling::OnStep";
    RILL_ASSIGN_OR_RETURN(
        const Tensor reward,
        transforms_internal::OwnLeaf(kOnStep, options_.key, step));
    return ScaleAll(kOnStep, reward);
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    if (!options_.on_forward) return spec;
    return ScaledSpec("RewardScaling::ForwardSpec", spec);
  }

  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override {
    if (!options_.on_step) return spec;
    return ScaledSpec("RewardScaling::StepSpec", spec);
  }

 private:
  // The product of two floats is exact in double, so that the result does not
  // depend on whether the compiler fuses the multiplication with the addition.
  template <typename T>
  T Scaled(T value) const {
    const double scale = static_cast<T>(options_.scale);
    const double loc = static_cast<T>(options_.loc);
    const double wide = value;
    return static_cast<T>(options_.standard_normal ? (wide - loc) / scale
                                                   : wide * scale + loc);
  }

  absl::Status ScaleAll(absl::string_view caller, const Tensor& reward) const {
    if (reward.dtype() == DType::kFloat32) {
      RILL_ASSIGN_OR_RETURN(absl::Span<float> values, reward.Flat<float>());
      for (float& value : values) value = Scaled(value);
      return absl::OkStatus();
    }
    if (reward.dtype() == DType::kFloat64) {
      RILL_ASSIGN_OR_RETURN(absl::Span<double> values, reward.Flat<double>());
      for (double& value : values) value = Scaled(value);
      return absl::OkStatus();
    }
    return WrongDType(caller, DTypeName(reward.dtype()));
  }

  absl::Status WrongDType(absl::string_view caller,
                          absl::string_view got) const {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": \"", options_.key, "\": got ", got,
                     ", want float32 or float64"));
  }

  absl::StatusOr<TensorDictSpec> ScaledSpec(absl::string_view caller,
                                            const TensorDictSpec& spec) const {
    RILL_ASSIGN_OR_RETURN(LeafSpec reward, transforms_internal::FindSpec(
                                               caller, options_.key, spec));
    if (reward.dtype != DType::kFloat32 && reward.dtype != DType::kFloat64) {
      return WrongDType(caller, reward.ToString());
    }
    if (reward.domain == LeafSpec::Domain::kBounded) {
      RILL_ASSIGN_OR_RETURN(reward, reward.MapBounds([&](double bound) {
        return ScaledBound(bound, reward.dtype);
      }));
    } else {
      reward = LeafSpec::Unbounded(reward.dtype, reward.shape);
    }
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(after.Set(options_.key, reward));
    return after;
  }

  double ScaledBound(double bound, DType dtype) const {
    return dtype == DType::kFloat32
               ? static_cast<double>(Scaled(static_cast<float>(bound)))
               : Scaled(bound);
  }

  const RewardScaling::Options options_;
};

absl::Status BadNumber(absl::string_view option, double got,
                       absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      "RewardScaling::Create: ", option, ": got ", got, ", want ", want));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transform>> RewardScaling::Create(
    const Options& options) {
  // A scale that float32 rounds to 0 or to infinity is none either.
  const float scale = static_cast<float>(options.scale);
  if (!std::isfinite(scale) || scale == 0) {
    return BadNumber("scale", options.scale, "a finite float32 other than 0");
  }
  if (!std::isfinite(static_cast<float>(options.loc))) {
    return BadNumber("loc", options.loc, "a finite float32");
  }
  if (!options.on_forward && !options.on_step) {
    return absl::InvalidArgumentError(
        "RewardScaling::Create: on_forward, on_step: got false for both, want "
        "true for one");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.key)) << "RewardScaling::Create: key";
  return std::make_unique<RewardScalingTransform>(options);
}

}  // namespace rill
