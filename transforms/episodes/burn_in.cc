// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/burn_in.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/device_leaves.h"
#include "rill/transforms/timeline/line_mask_kernel.h"

namespace rill {
namespace {

using transforms_internal::NumSteps;

// The size of the last batch dimension.
class BurnInTransform final : public BatchTransform {
 public:
  explicit BurnInTransform(const BurnIn::Options& options)
      : options_(options), spare_(2) {}

  absl::string_view name() const override { return "BurnIn"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("burn_in", options_.burn_in)
        .Text("mask_key", options_.mask_key);
  }

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    RILL_ASSIGN_OR_RETURN(const int64_t steps,
                          NumSteps("BurnIn::Forward", batch->batch_shape()));
    const Tensor* const found = batch->Find(options_.mask_key);
    const Device device = found == nullptr
                              ? transforms_internal::DeviceOf(*batch)
                              : found->device();
    if (!device.is_cpu()) return MaskOnDevice(device, steps, batch);
    RILL_ASSIGN_OR_RETURN(const Tensor mask, FindMask(batch));
    // Lines that are shorter than the burn-in are masked whole.
    const int64_t cut = std::min(options_.burn_in, steps);
    const int64_t rows = batch->batch_shape().num_elements();
    for (int64_t begin = 0; begin < rows; begin += steps) {
      std::fill_n(mask.data<bool>() + begin, cut, false);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override {
    constexpr absl::string_view kCaller = "BurnIn::ForwardSpec";
    if (spec.Find(options_.mask_key) != nullptr) {
      RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlagAnywhere(
          kCaller, options_.mask_key, spec));
    }
    TensorDictSpec after = spec;
    RILL_RETURN_IF_ERROR(after.Set(options_.mask_key, LeafSpec::Binary({1})));
    return after;
  }

 private:
  absl::Status MaskOnDevice(Device device, int64_t steps,
                            TensorDict* batch) const {
    constexpr absl::string_view kCaller = "BurnIn::Forward";
    const Shape shape = batch->batch_shape().Concat({1});
    const bool is_new = !batch->Contains(options_.mask_key);
    transforms_internal::DeviceWork::Call call(&device_work_);
    RILL_RETURN_IF_ERROR(call.Begin(device)) << kCaller;
    Tensor mask;
    if (is_new) {
      RILL_ASSIGN_OR_RETURN(mask, call.Take(DType::kBool, shape));
    } else {
      RILL_ASSIGN_OR_RETURN(mask, transforms_internal::UpdateDeviceLeaf(
                                      kCaller, options_.mask_key, DType::kBool,
                                      shape, &call, batch));
    }
    const int64_t rows = batch->batch_shape().num_elements();
    if (rows > 0) {
      RILL_RETURN_IF_ERROR(LaunchKernel(
          transforms_internal::LineMaskKernel{
              .mask = mask.data<uint8_t>(),
              .rows = rows,
              .time = steps,
              .cut = std::min(options_.burn_in, steps),
              .is_new = is_new},
          GridFor(rows), call.stream()))
          << kCaller;
    }
    if (is_new) {
      RILL_RETURN_IF_ERROR(batch->Set(options_.mask_key, mask))
          << "in " << kCaller;
    }
    return call.End();
  }

  // The mask to change: the batch's own, or a new one that is true everywhere.
  absl::StatusOr<Tensor> FindMask(TensorDict* batch) const {
    const Shape shape = batch->batch_shape().Concat({1});
    if (batch->Contains(options_.mask_key)) {
      return transforms_internal::UpdateLeaf(
          "BurnIn::Forward", options_.mask_key, DType::kBool, shape, batch);
    }
    RILL_ASSIGN_OR_RETURN(Tensor mask, spare_.Take(DType::kBool, shape));
    std::fill_n(mask.data<bool>(), mask.num_elements(), true);
    RILL_RETURN_IF_ERROR(batch->Set(options_.mask_key, mask))
        << "in BurnIn::Forward";
    return mask;
  }

  const BurnIn::Options options_;
  mutable transforms_internal::SpareTensors spare_;
  mutable transforms_internal::DeviceWork device_work_{2};
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> BurnIn::Create(
    const Options& options) {
  if (options.burn_in < 0) {
    return InvalidArgument("BurnIn::Create: burn_in: got ", options.burn_in,
                           ", want >= 0");
  }
  RILL_RETURN_IF_ERROR(CheckKey(options.mask_key))
      << "BurnIn::Create: mask_key";
  return std::make_unique<BurnInTransform>(options);
}

absl::StatusOr<BurnInParts> SplitBurnIn(const TensorDict& batch,
                                        int64_t burn_in) {
  RILL_ASSIGN_OR_RETURN(const int64_t steps,
                        NumSteps("SplitBurnIn", batch.batch_shape()));
  if (burn_in < 0 || burn_in > steps) {
    return InvalidArgument("SplitBurnIn: burn_in: got ", burn_in, ", want [0, ",
                           steps, "]");
  }
  // Both parts are views; writing into one is writing into the batch.
  const int time = batch.batch_shape().rank() - 1;
  BurnInParts parts;
  RILL_ASSIGN_OR_RETURN(parts.burn_in, batch.Slice(time, 0, burn_in));
  RILL_ASSIGN_OR_RETURN(parts.rest, batch.Slice(time, burn_in, steps));
  return parts;
}

}  // namespace rill
