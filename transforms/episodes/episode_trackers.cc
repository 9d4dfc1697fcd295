// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/episode_trackers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel_launch.h"
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
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/episode_kernels.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill {
namespace {

using transforms_internal::DeviceWork;
using transforms_internal::FillLanes;
using transforms_internal::TrajNumberKernel;

constexpr absl::string_view kCount = "traj_count";

// The leaves of both: what is new at the root, then below next.
constexpr size_t kRoot = 0;
constexpr size_t kNext = 1;

// The plan of a leaf that the transform adds at the root and below next, in
// this order.
absl::StatusOr<StepPlan> PlanNewLeaf(absl::string_view caller,
                                     const std::string& key,
                                     const LeafSpec& leaf,
                                     const TensorDictSpec& step) {
  StepPlan plan = {.spec = step};
  for (const std::string& each : {key, absl::StrCat("next/", key)}) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::AddNew(caller, each, leaf, &plan));
  }
  return plan;
}

class InitTrackerTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit InitTrackerTransform(std::string key) : key_(std::move(key)) {}

  absl::string_view name() const override { return "InitTracker"; }
  OptionValues option_values() const override {
    return OptionValues().Text("init_key", key_);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    return PlanNewLeaf("InitTracker::PlanSteps", key_, LeafSpec::Binary({1}),
                       step);
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    const absl::Span<bool> flags = leaves[kRoot].As<bool>();
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) flags[lane] = true;
    }
    return absl::OkStatus();
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    const absl::Span<bool> flags = leaves[kNext].As<bool>();
    std::fill(flags.begin(), flags.end(), false);
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    return FillLanes(true, call.mask, leaves[kRoot], call.stream);
  }
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    return FillLanes(false, nullptr, leaves[kNext], call.stream);
  }

 private:
  const std::string key_;
};

// A scalar tensor: states hold tensors only.
absl::StatusOr<TensorDict> CountState(int64_t count) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::From<int64_t>({count}, Shape()));
  return TensorDict::Create({}, {{kCount, std::move(tensor)}});
}

class TrajCounterTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit TrajCounterTransform(std::string key) : key_(std::move(key)) {}

  absl::string_view name() const override { return "TrajCounter"; }
  OptionValues option_values() const override {
    return OptionValues().Text("out_key", key_);
  }
  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    return CountState(0);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    return PlanNewLeaf("TrajCounter::PlanSteps", key_,
                       LeafSpec::Unbounded(DType::kInt64, {1}), step);
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    // The state's tensor is not written: the caller keeps the old state on an
    // error. A new one is set.
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kCount));
    RILL_ASSIGN_OR_RETURN(const int64_t first, before.Item<int64_t>());
    int64_t count = first;
    const absl::Span<int64_t> numbers = leaves[kRoot].As<int64_t>();
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) numbers[lane] = count++;
    }
    if (count == first) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(Tensor after, spare_.Take(DType::kInt64, Shape()));
    *after.data<int64_t>() = count;
    return state->Set(kCount, std::move(after));
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    // A step carries the number on; the trajectory of a lane changes with a
    // reset only.
    const absl::Span<const int64_t> before = leaves[kRoot].As<int64_t>();
    std::copy(before.begin(), before.end(),
              leaves[kNext].As<int64_t>().begin());
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor before, state->Get(kCount));
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    RILL_ASSIGN_OR_RETURN(Tensor after,
                          work.Take(before.dtype(), before.shape()));
    work.Keep(before);
    const int64_t lanes = leaves[kRoot].num_elements();
    const TrajNumberKernel kernel = {.mask = call.mask,
                                     .numbers = leaves[kRoot].data<int64_t>(),
                                     .count = before.data<int64_t>(),
                                     .new_count = after.data<int64_t>(),
                                     .lanes = lanes};
    const auto threads = static_cast<int>(
        std::min<int64_t>(lanes, TrajNumberKernel::kMostThreads));
    RILL_RETURN_IF_ERROR(
        LaunchKernel(kernel, {.blocks = 1, .threads = threads}, call.stream));
    RILL_RETURN_IF_ERROR(work.End());
    return state->Set(kCount, std::move(after));
  }
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    return leaves[kNext].CopyFromAsync(leaves[kRoot], call.stream);
  }

 private:
  const std::string key_;
  mutable transforms_internal::SpareTensors spare_{4};
  mutable DeviceWork device_work_{4};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> InitTracker::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.init_key))
      << "InitTracker::Create: init_key";
  return std::make_unique<InitTrackerTransform>(options.init_key);
}

absl::StatusOr<std::unique_ptr<StepTransform>> TrajCounter::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(CheckKey(options.out_key))
      << "TrajCounter::Create: out_key";
  return std::make_unique<TrajCounterTransform>(options.out_key);
}

}  // namespace rill
