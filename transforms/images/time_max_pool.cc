// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/time_max_pool.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/images/image_kernels.h"
#include "rill/transforms/images/max_kernels.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/rows/element_copies.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_results.h"

namespace rill {
namespace {

using transforms_internal::AddLeaf;
using transforms_internal::AddNew;
using transforms_internal::AddWritten;
using transforms_internal::CheckRootKeys;
using transforms_internal::DeviceWork;
using transforms_internal::Misfit;

constexpr absl::string_view kCreate = "TimeMaxPool::Create";
constexpr absl::string_view kPlanSteps = "TimeMaxPool::PlanSteps";
constexpr int64_t kMaxSteps = int64_t{1} << 20;

// Leaves of steps, for each key: the newest value, the largest, and where T > 2
// the values before the newest two; then the same below next. The values before
// are ordered from the newest to the oldest.
enum StepLeaf : size_t { kValue, kLargest, kBefore };

bool IsKnown(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

// *to becomes the larger of itself and *from, element by element. A NaN in
// either stays.
template <typename T>
void Raise(const std::byte* from, int64_t bytes, std::byte* to) {
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  const T* const in = reinterpret_cast<const T*>(from);
  T* const out = reinterpret_cast<T*>(to);
  if constexpr (sizeof(T) == sizeof(double)) {
    for (int64_t i = 0; i < count; ++i) {
      if (in[i] > out[i] || std::isnan(in[i])) out[i] = in[i];
    }
  } else {
    transforms_internal::MaxOfTwo(in, out, count, out);
  }
}

void RaiseBy(DType dtype, const std::byte* from, int64_t bytes, std::byte* to) {
  if (dtype == DType::kUInt8) {
    Raise<uint8_t>(from, bytes, to);
  } else if (dtype == DType::kFloat32) {
    Raise<float>(from, bytes, to);
  } else {
    Raise<double>(from, bytes, to);
  }
}

class TimeMaxPoolTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit TimeMaxPoolTransform(const TimeMaxPool::Options& options)
      : options_(options) {}

  absl::string_view name() const override { return "TimeMaxPool"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("num_steps", options_.num_steps)
        .Texts("in_keys", options_.in_keys)
        .Texts("out_keys", options_.out_keys);
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (size_t i = 0; i < options_.in_keys.size(); ++i) {
      RILL_RETURN_IF_ERROR(PlanKey(i, step, &plan));
    }
    return plan;
  }

  // The value of the reset counts as all T values, so that the largest of fewer
  // is right without a count of steps.
  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* /*state*/) const override {
    for (; !leaves.empty(); leaves.remove_prefix(2 * half())) {
      const BoundLeaf& value = leaves[kValue];
      for (size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] == 0) continue;
        const auto lane = static_cast<int64_t>(i);
        const std::byte* const from = value.data + lane * value.width;
        std::memcpy(leaves[kLargest].data + lane * value.width, from,
                    static_cast<size_t>(value.width));
        // The first value again: it changes no maximum.
        for (int64_t k = 0; k < num_before(); ++k) {
          std::memcpy(
              leaves[kBefore].data + (lane * num_before() + k) * value.width,
              from, static_cast<size_t>(value.width));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    for (; !leaves.empty(); leaves.remove_prefix(2 * half())) {
      const Leaves next = leaves.subspan(half());
      const BoundLeaf& value = leaves[kValue];
      const int64_t bytes = value.rows * value.width;
      // The maximum begins with the newest value; those before only raise it.
      std::memcpy(next[kLargest].data, next[kValue].data,
                  static_cast<size_t>(bytes));
      if (options_.num_steps == 1) continue;
      // The root's value is the one before the newest, since next is carried
      // over.
      RaiseBy(value.dtype, value.data, bytes, next[kLargest].data);
      if (num_before() == 0) continue;
      for (int64_t lane = 0; lane < value.rows; ++lane) {
        StepLane(lane, leaves, next);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    for (; !leaves.empty(); leaves.remove_prefix(2 * half())) {
      const Tensor& value = leaves[kValue];
      DeviceWork::Call work(&device_work_);
      RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
      transforms_internal::LaneResults results(&call, &work);
      transforms_internal::ElementCopies copies(&call.stream);
      RILL_ASSIGN_OR_RETURN(const Tensor largest,
                            results.PlaceOf(leaves[kLargest]));
      RILL_RETURN_IF_ERROR(copies.Add(value, largest));
      if (num_before() > 0) {
        RILL_ASSIGN_OR_RETURN(const Tensor before,
                              results.PlaceOf(leaves[kBefore]));
        RILL_ASSIGN_OR_RETURN(const Tensor one, value.Unsqueeze(1));
        RILL_ASSIGN_OR_RETURN(const Tensor all, one.Expand(before.shape()));
        RILL_RETURN_IF_ERROR(copies.Add(all, before));
      }
      RILL_RETURN_IF_ERROR(copies.Launch());
      RILL_RETURN_IF_ERROR(results.Finish());
      RILL_RETURN_IF_ERROR(work.End());
    }
    return absl::OkStatus();
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    for (; !leaves.empty(); leaves.remove_prefix(2 * half())) {
      const Tensors own = leaves.first(2 * half());
      switch (own[kValue].dtype()) {
        case DType::kUInt8:
          RILL_RETURN_IF_ERROR(Launch<uint8_t>(call, own));
          break;
        case DType::kFloat32:
          RILL_RETURN_IF_ERROR(Launch<float>(call, own));
          break;
        default:
          RILL_RETURN_IF_ERROR(Launch<double>(call, own));
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  absl::Status Launch(const Call& call, Tensors root) const {
    const Tensors next = root.subspan(half());
    const Tensor& value = root[kValue];
    const int64_t lanes = value.shape()[0];
    const bool has_before = num_before() > 0;
    const transforms_internal::TimeMaxKernel<T> kernel = {
        .value = options_.num_steps > 1 ? value.data<T>() : nullptr,
        .newest = next[kValue].data<T>(),
        .largest = next[kLargest].data<T>(),
        .before = has_before ? root[kBefore].data<T>() : nullptr,
        .after = has_before ? next[kBefore].data<T>() : nullptr,
        .num_before = num_before(),
        .width = value.num_elements() / lanes,
        .lanes = lanes};
    if (value.num_elements() == 0) return absl::OkStatus();
    return LaunchKernel(kernel, GridFor(value.num_elements()), call.stream);
  }

  // Values that are kept beside the root's.
  int64_t num_before() const {
    return options_.num_steps > 2 ? options_.num_steps - 2 : 0;
  }
  // Leaves of a key, at the root or below next.
  size_t half() const { return num_before() > 0 ? 3 : 2; }

  // All of the other T - 2 values of the lane go into the maximum. Then the
  // list moves on by one: the root's value is put in front, and the oldest is
  // dropped.
  void StepLane(int64_t lane, Leaves root, Leaves next) const {
    const int64_t width = root[kValue].width;
    const std::byte* const before =
        root[kBefore].data + lane * num_before() * width;
    std::byte* const after = next[kBefore].data + lane * num_before() * width;
    for (int64_t k = 0; k < num_before(); ++k) {
      RaiseBy(root[kValue].dtype, before + k * width, width,
              next[kLargest].data + lane * width);
    }
    // `after` is another leaf than `before`, so the copies overlap nothing.
    std::memcpy(after, root[kValue].data + lane * width,
                static_cast<size_t>(width));
    std::memcpy(after + width, before,
                static_cast<size_t>((num_before() - 1) * width));
  }

  absl::Status PlanKey(size_t i, const TensorDictSpec& step,
                       StepPlan* plan) const {
    const std::string& key = options_.in_keys[i];
    const std::string& out =
        options_.out_keys.empty() ? key : options_.out_keys[i];
    RILL_ASSIGN_OR_RETURN(const LeafSpec root,
                          transforms_internal::FindSpec(kPlanSteps, key, step));
    for (const absl::string_view prefix : {"", "next/"}) {
      const std::string from = absl::StrCat(prefix, key);
      const std::string to = absl::StrCat(prefix, out);
      RILL_ASSIGN_OR_RETURN(const LeafSpec leaf, transforms_internal::FindSpec(
                                                     kPlanSteps, from, step));
      if (!IsKnown(leaf.dtype) || leaf.dtype != root.dtype ||
          !(leaf.shape == root.shape)) {
        return Misfit(kPlanSteps, from, leaf,
                      "uint8, float32 or float64, at the root as below next");
      }
      const Shape kept = Shape({num_before()}).Concat(leaf.shape);
      if (num_before() > 0 && kept.rank() >= Shape::kMaxRank) {
        return Misfit(kPlanSteps, from, leaf,
                      "a dimension less, as num_steps > 2 adds one");
      }
      // The domain holds for a maximum of members: it is one of them.
      using Domain = LeafSpec::Domain;
      const bool keeps = leaf == root && (leaf.domain == Domain::kBounded ||
                                          leaf.domain == Domain::kBinary);
      AddLeaf(from, leaf, LeafUse::kRead, plan);
      const LeafSpec after =
          keeps ? leaf : LeafSpec::Unbounded(leaf.dtype, leaf.shape);
      RILL_RETURN_IF_ERROR(to == from ? AddWritten(to, after, plan)
                                      : AddNew(kPlanSteps, to, after, plan));
      if (num_before() == 0) continue;
      RILL_RETURN_IF_ERROR(AddNew(kPlanSteps, absl::StrCat(to, "_before"),
                                  LeafSpec::Unbounded(leaf.dtype, kept), plan));
    }
    return absl::OkStatus();
  }

  const TimeMaxPool::Options options_;
  mutable DeviceWork device_work_{8};
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> TimeMaxPool::Create(
    const Options& options) {
  if (options.num_steps < 1 || options.num_steps > kMaxSteps) {
    return InvalidArgument(kCreate, ": num_steps: got ", options.num_steps,
                           ", want 1 .. ", kMaxSteps);
  }
  RILL_RETURN_IF_ERROR(
      RowwiseTransform::CheckRows(kCreate, {.map = nullptr,
                                            .in_keys = options.in_keys,
                                            .out_keys = options.out_keys}));
  RILL_RETURN_IF_ERROR(CheckRootKeys(kCreate, "in_keys", options.in_keys));
  return std::make_unique<TimeMaxPoolTransform>(options);
}

}  // namespace rill
