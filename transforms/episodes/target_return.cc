// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/target_return.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/episode_kernels.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill {
namespace {

// For each reward: its target at the root and below next, and itself.
constexpr size_t kRoot = 0;
constexpr size_t kNext = 1;
constexpr size_t kReward = 2;
constexpr size_t kLeaves = 3;

// The target at the root of the lanes with mask[lane] != 0, each element of a
// row.
template <typename T>
void Start(absl::Span<const uint8_t> mask, double target,
           const BoundLeaf& root) {
  const absl::Span<T> left = root.As<T>();
  const size_t width = mask.empty() ? 0 : left.size() / mask.size();
  for (size_t lane = 0; lane < mask.size(); ++lane) {
    if (mask[lane] == 0) continue;
    std::fill_n(left.begin() + static_cast<int64_t>(lane * width), width,
                static_cast<T>(target));
  }
}

// Writes the target below next: the root's less the reward, in T. The root is
// not changed, as the environment carries next over to it.
template <typename T>
void Step(bool reduces, StepTransform::Leaves leaves) {
  const absl::Span<const T> before = leaves[kRoot].As<T>();
  const absl::Span<T> after = leaves[kNext].As<T>();
  const absl::Span<const T> rewards = leaves[kReward].As<T>();
  for (size_t i = 0; i < after.size(); ++i) {
    after[i] = reduces ? before[i] - rewards[i] : before[i];
  }
}

template <typename T>
absl::Status StepOnDevice(bool reduces, const DeviceSteps::Call& call,
                          DeviceSteps::Tensors leaves) {
  const int64_t elements = leaves[kRoot].num_elements();
  const transforms_internal::TargetReturnKernel<T> kernel = {
      .before = leaves[kRoot].data<T>(),
      .rewards = leaves[kReward].data<T>(),
      .after = leaves[kNext].data<T>(),
      .reduces = reduces,
      .elements = elements};
  return elements == 0 ? absl::OkStatus()
                       : LaunchKernel(kernel, GridFor(elements), call.stream);
}

class TargetReturnTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit TargetReturnTransform(const TargetReturn::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "TargetReturn"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Double("target_return", options_.target_return)
        .Choice("mode", reduces() ? "reduce" : "constant")
        .Texts("in_keys", options_.in_keys)
        .Texts("out_keys", options_.out_keys);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    constexpr absl::string_view kPlan = "TargetReturn::PlanSteps";
    StepPlan plan = {.spec = step};
    for (size_t i = 0; i < options_.in_keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(
          const LeafSpec reward,
          transforms_internal::FindFloat(kPlan, options_.in_keys[i], step));
      const std::string& key = options_.out_keys[i];
      for (const std::string& each : {key, absl::StrCat("next/", key)}) {
        RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
            kPlan, each, LeafSpec::Unbounded(reward.dtype, reward.shape),
            &plan));
      }
      transforms_internal::AddLeaf(options_.in_keys[i], reward, LeafUse::kRead,
                                   &plan);
    }
    return plan;
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    for (size_t i = 0; i < leaves.size(); i += kLeaves) {
      const BoundLeaf& root = leaves[i + kRoot];
      if (root.dtype == DType::kFloat32) {
        Start<float>(mask, options_.target_return, root);
      } else {
        Start<double>(mask, options_.target_return, root);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    for (size_t i = 0; i < leaves.size(); i += kLeaves) {
      const Leaves own = leaves.subspan(i, kLeaves);
      if (own[kRoot].dtype == DType::kFloat32) {
        Step<float>(reduces(), own);
      } else {
        Step<double>(reduces(), own);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    using transforms_internal::FillLanes;
    const double target = options_.target_return;
    for (size_t i = 0; i < leaves.size(); i += kLeaves) {
      const Tensor& root = leaves[i + kRoot];
      RILL_RETURN_IF_ERROR(
          root.dtype() == DType::kFloat32
              ? FillLanes(static_cast<float>(target), call.mask, root,
                          call.stream)
              : FillLanes(target, call.mask, root, call.stream));
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    for (size_t i = 0; i < leaves.size(); i += kLeaves) {
      const Tensors own = leaves.subspan(i, kLeaves);
      RILL_RETURN_IF_ERROR(own[kRoot].dtype() == DType::kFloat32
                               ? StepOnDevice<float>(reduces(), call, own)
                               : StepOnDevice<double>(reduces(), call, own));
    }
    return absl::OkStatus();
  }

 private:
  bool reduces() const { return options_.mode == TargetReturn::Mode::kReduce; }

  const TargetReturn::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> TargetReturn::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "TargetReturn::Create";
  // float32 leaves get the rounded target, which has to be finite.
  if (!std::isfinite(static_cast<float>(options.target_return))) {
    return InvalidArgument(kCreate, ": target_return: got ",
                           options.target_return, ", want a finite float32");
  }
  if (options.in_keys.empty() ||
      options.in_keys.size() != options.out_keys.size()) {
    return InvalidArgument(
        kCreate, ": in_keys, out_keys: got ", options.in_keys.size(), " and ",
        options.out_keys.size(), ", want at least one of each, as many");
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < options.in_keys.size(); ++i) {
    const std::string& key = options.in_keys[i];
    const std::string& out = options.out_keys[i];
    RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": in_keys";
    RILL_RETURN_IF_ERROR(CheckKey(out)) << kCreate << ": out_keys";
    if (absl::StartsWith(out, "next/") || !absl::StartsWith(key, "next/") ||
        !seen.insert(out).second || !seen.insert(key).second) {
      return InvalidArgument(
          kCreate, ": keys: got \"", key, "\" and \"", out,
          "\", want a reward below next/ and a leaf of the root, "
          "each once");
    }
  }
  return std::make_unique<TargetReturnTransform>(options);
}

}  // namespace rill
