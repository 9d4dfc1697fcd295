// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_recorder.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// One row of kWidth bytes a lane; 0: `width`, known at run time only.
template <int64_t kWidth>
void CopyRows(const std::byte* from, std::byte* to, int64_t to_lane_stride,
              int64_t width, int64_t lanes) {
  if constexpr (kWidth > 0) width = kWidth;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::memcpy(to, from, kWidth > 0 ? kWidth : width);
    from += width;
    to += to_lane_stride;
  }
}

}  // namespace

absl::StatusOr<StepRecorder> StepRecorder::Create(const TensorDictSpec& spec,
                                                  const TensorDict& batch) {
  if (batch.batch_shape().rank() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("StepRecorder::Create: batch shape: got ",
                     batch.batch_shape().ToString(), ", want [lanes, time]"));
  }
  StepRecorder recorder;
  recorder.lanes_ = batch.batch_shape()[0];
  recorder.batch_ = batch;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, batch.Get(leaf.key));
    RILL_RETURN_IF_ERROR(
        leaf.spec.CheckLayout(leaf.key, batch.batch_shape(), tensor))
        << "StepRecorder::Create";
    if (!tensor.is_contiguous() || !tensor.is_host() || !tensor.is_writable()) {
      return absl::InvalidArgumentError(
          absl::StrCat("StepRecorder::Create: leaf \"", leaf.key,
                       "\": want contiguous writable host memory"));
    }
    const int64_t width =
        leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    recorder.columns_.push_back(
        {.key = leaf.key,
         .spec = leaf.spec,
         .from = {},
         .to = tensor.raw_data(),
         .width = width,
         .to_lane_stride = width * batch.batch_shape()[1]});
  }
  return recorder;
}

absl::Status StepRecorder::Bind(const TensorDict& step) {
  for (Column& column : columns_) {
    const Tensor* tensor = step.Find(column.key);
    if (tensor == nullptr) return step.Get(column.key).status();
    RILL_RETURN_IF_ERROR(
        column.spec.CheckLayout(column.key, {lanes_}, *tensor));
    if (tensor->is_contiguous() && tensor->is_host()) {
      column.from = *tensor;
      continue;
    }
    RILL_ASSIGN_OR_RETURN(column.from, tensor->To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(column.from, column.from.Contiguous());
  }
  return absl::OkStatus();
}

void StepRecorder::Record(int64_t t) const {
  for (const Column& column : columns_) {
    const std::byte* from = column.from.raw_data();
    std::byte* to = column.to + t * column.width;
    const auto copy = [&](auto width) {
      CopyRows<decltype(width)::value>(from, to, column.to_lane_stride,
                                       column.width, lanes_);
    };
    switch (column.width) {
      case 0:
        break;
      case 1:
        copy(std::integral_constant<int64_t, 1>());
        break;
      case 4:
        copy(std::integral_constant<int64_t, 4>());
        break;
      case 8:
        copy(std::integral_constant<int64_t, 8>());
        break;
      case 16:
        copy(std::integral_constant<int64_t, 16>());
        break;
      default:
        copy(std::integral_constant<int64_t, 0>());
    }
  }
}

}  // namespace rill
