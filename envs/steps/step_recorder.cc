// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_recorder.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/shape.h"

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
  recorder.batch_ = batch;
  std::vector<BoundRows::Leaf> leaves;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, batch.Get(leaf.key));
    RILL_RETURN_IF_ERROR(
        leaf.spec.CheckLayout(leaf.key, batch.batch_shape(), tensor))
        << "StepRecorder::Create";
    if (!MayReuse(tensor, leaf.spec.dtype, batch.batch_shape(), leaf.spec.shape,
                  {.is_passed_in = true})) {
      return absl::InvalidArgumentError(
          absl::StrCat("StepRecorder::Create: leaf \"", leaf.key,
                       "\": want contiguous writable host memory"));
    }
    recorder.to_.push_back(tensor.raw_data());
    recorder.keys_.push_back(leaf.key);
    leaves.push_back(
        {.key = leaf.key, .dtype = leaf.spec.dtype, .shape = leaf.spec.shape});
  }
  RILL_ASSIGN_OR_RETURN(recorder.from_, BoundRows::Create("StepRecorder::Bind",
                                                          std::move(leaves)));
  return recorder;
}

absl::Status StepRecorder::Bind(const TensorDict& step) {
  const Shape lanes = {batch_.batch_shape()[0]};
  if (!(step.batch_shape() == lanes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "StepRecorder::Bind: batch shape: got ", step.batch_shape().ToString(),
        ", want ", lanes.ToString()));
  }
  RILL_ASSIGN_OR_RETURN(step_, Mirror(step));
  return from_.Bind(step_);
}

// The step itself where all of it is in host memory.
absl::StatusOr<TensorDict> StepRecorder::Mirror(const TensorDict& step) {
  mirror_ = HostMirror();
  bool is_host = true;
  step.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    is_host = is_host && leaf.is_host();
  });
  if (is_host) return step;
  TensorDict host(step.batch_shape());
  for (const std::string& key : keys_) {
    const Tensor* const leaf = step.Find(key);
    if (leaf == nullptr) continue;
    absl::StatusOr<Tensor> mirrored = mirror_.Add(*leaf);
    RILL_RETURN_IF_ERROR(mirrored.status())
        << "in StepRecorder::Bind of \"" << key << "\"";
    RILL_RETURN_IF_ERROR(host.Set(key, *std::move(mirrored)));
  }
  return host;
}

absl::Status StepRecorder::Record(int64_t t) const {
  RILL_RETURN_IF_ERROR(mirror_.Update());
  const int64_t lanes = batch_.batch_shape()[0];
  const int64_t time = batch_.batch_shape()[1];
  for (size_t i = 0; i < to_.size(); ++i) {
    const BoundLeaf& from = from_[i];
    std::byte* const to = to_[i] + t * from.width;
    const auto copy = [&](auto width) {
      CopyRows<decltype(width)::value>(from.data, to, from.width * time,
                                       from.width, lanes);
    };
    switch (from.width) {
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
  return absl::OkStatus();
}

}  // namespace rill
