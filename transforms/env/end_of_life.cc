// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/end_of_life.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/cast_elements.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/rows/element_kernels.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/episode_kernels.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill {
namespace {

constexpr absl::string_view kPlanSteps = "EndOfLife::PlanSteps";

std::string Next(absl::string_view key) { return absl::StrCat("next/", key); }

int64_t LivesOf(const BoundLeaf& leaf, int64_t lane) {
  int64_t lives = 0;
  CastElements(leaf.dtype, DType::kInt64, leaf.data + lane * leaf.width,
               reinterpret_cast<std::byte*>(&lives), 1);
  return lives;
}

class EndOfLifeTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit EndOfLifeTransform(const EndOfLife::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "EndOfLife"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Text("eol_key", options_.eol_key)
        .Text("lives_key", options_.lives_key)
        .Text("done_key", options_.done_key);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    // The written leaves come last: the constants below are places in this
    // list.
    StepPlan plan = {.spec = step};
    for (const std::string& key :
         {options_.lives_key, Next(options_.lives_key)}) {
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf, transforms_internal::FindSpec(
                                                     kPlanSteps, key, step));
      // The wide unsigned ones have no arithmetic.
      if (!IsInteger(leaf.dtype) || leaf.dtype == DType::kUInt16 ||
          leaf.dtype == DType::kUInt32 || leaf.dtype == DType::kUInt64 ||
          leaf.shape.num_elements() != 1) {
        return transforms_internal::Misfit(
            kPlanSteps, key, leaf, "one signed integer or uint8 a lane");
      }
      transforms_internal::AddLeaf(key, leaf, LeafUse::kRead, &plan);
    }
    RILL_RETURN_IF_ERROR(transforms_internal::AddFlag(
        kPlanSteps, Next(options_.done_key), LeafUse::kRead, &plan));
    for (const std::string& key : {options_.eol_key, Next(options_.eol_key)}) {
      RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
          kPlanSteps, key, LeafSpec::Binary({1}), &plan));
    }
    return plan;
  }

  // Only the root: the flag below next is that of the last step.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    const absl::Span<bool> ends = leaves[kEnd].As<bool>();
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) ends[lane] = false;
    }
    return absl::OkStatus();
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const absl::Span<const bool> done = leaves[kDone].As<bool>();
    const absl::Span<bool> ends = leaves[kNextEnd].As<bool>();
    // The root has the lives before the step, next those after it. A done lane
    // ends a life whatever the count is.
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      const auto i = static_cast<int64_t>(lane);
      ends[lane] = done[lane] ||
                   LivesOf(leaves[kNextLives], i) < LivesOf(leaves[kLives], i);
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    return transforms_internal::FillLanes(false, call.mask, leaves[kEnd],
                                          call.stream);
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    using transforms_internal::EndOfLifeKernel;
    const auto lives = [](const Tensor& leaf) -> EndOfLifeKernel::Lives {
      return {
          .data = leaf.raw_data(),
          .type = static_cast<transforms_internal::ElementType>(leaf.dtype()),
          .bytes = leaf.size_bytes()};
    };
    const int64_t lanes = leaves[kEnd].num_elements();
    const EndOfLifeKernel kernel = {.before = lives(leaves[kLives]),
                                    .after = lives(leaves[kNextLives]),
                                    .done = leaves[kDone].data<uint8_t>(),
                                    .ends = leaves[kNextEnd].data<uint8_t>(),
                                    .lanes = lanes};
    return LaunchKernel(kernel, GridFor(lanes), call.stream);
  }

 private:
  // Places in the plan's leaves.
  static constexpr size_t kLives = 0;
  static constexpr size_t kNextLives = 1;
  static constexpr size_t kDone = 2;
  static constexpr size_t kEnd = 3;
  static constexpr size_t kNextEnd = 4;

  const EndOfLife::Options options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> EndOfLife::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.eol_key))
      << "EndOfLife::Create: eol_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.lives_key))
      << "EndOfLife::Create: lives_key";
  RILL_RETURN_IF_ERROR(CheckKey(options.done_key))
      << "EndOfLife::Create: done_key";
  return std::make_unique<EndOfLifeTransform>(options);
}

}  // namespace rill
