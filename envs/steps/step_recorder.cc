// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_recorder.h"

#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/envs/steps/row_transpose.h"
#include "rill/tensors/shape.h"

namespace rill {
namespace {

// As many rows of a byte as a vector has.
constexpr int64_t kStagedSteps = 16;
constexpr int64_t kMaxStagedWidth = 64;  // A cache line.

// Spares narrow rows a call.
void CopyRow(const std::byte* from, std::byte* to, int64_t width) {
  switch (width) {
    case 1:
      *to = *from;
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      if (width > 0) std::memcpy(to, from, width);
  }
}

}  // namespace

absl::StatusOr<StepRecorder> StepRecorder::Create(const TensorDictSpec& spec,
                                                  const TensorDict& batch) {
  if (batch.batch_shape().rank() != 2) {
    return InvalidArgument("StepRecorder::Create: batch shape: got ",
                           batch.batch_shape().ToString(),
                           ", want [lanes, time]");
  }
  StepRecorder recorder;
  recorder.batch_ = batch;
  const int64_t lanes = batch.batch_shape()[0];
  const int64_t rows = lanes * batch.batch_shape()[1];
  std::vector<BoundRows::Leaf> leaves;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor tensor, batch.Get(leaf.key));
    RILL_RETURN_IF_ERROR(
        leaf.spec.CheckLayout(leaf.key, batch.batch_shape(), tensor))
        << "StepRecorder::Create";
    // Passed in: the caller holds the tensor too, and wants its bytes written.
    if (!MayReuse(tensor, leaf.spec.dtype, batch.batch_shape(), leaf.spec.shape,
                  {.is_passed_in = true})) {
      return InvalidArgument("StepRecorder::Create: leaf \"", leaf.key,
                             "\": want contiguous writable host memory");
    }
    To to = {.batch = tensor.raw_data(),
             .width = rows > 0 ? tensor.size_bytes() / rows : 0,
             .staged = {}};
    // A lane alone has its steps side by side anyway; a wider row fills cache
    // lines by itself.
    if (lanes > 1 && to.width <= kMaxStagedWidth) {
      to.staged.resize(kStagedSteps * lanes * to.width);
    }
    recorder.to_.push_back(std::move(to));
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
    return InvalidArgument("StepRecorder::Bind: batch shape: got ",
                           step.batch_shape().ToString(), ", want ",
                           lanes.ToString());
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

absl::Status StepRecorder::Record(int64_t t) {
  RILL_RETURN_IF_ERROR(mirror_.Update());
  // Staged rows are of consecutive times. A caller that jumps, as one that
  // begins a new batch does, has the rest written first.
  if (staged_steps_ == kStagedSteps || t != first_time_ + staged_steps_) {
    Flush();
  }
  if (staged_steps_ == 0) first_time_ = t;
  const int64_t lanes = batch_.batch_shape()[0];
  for (size_t i = 0; i < to_.size(); ++i) {
    To& to = to_[i];
    const std::byte* const from = from_[i].data;
    if (lanes == 1) {
      CopyRow(from, to.batch + t * to.width, to.width);
    } else if (to.staged.empty()) {
      Write(to, from, t, /*steps=*/1);
    } else {
      const int64_t bytes = lanes * to.width;
      std::memcpy(to.staged.data() + staged_steps_ * bytes, from, bytes);
    }
  }
  ++staged_steps_;
  return absl::OkStatus();
}

void StepRecorder::Flush() {
  for (const To& to : to_) {
    if (!to.staged.empty()) {
      Write(to, to.staged.data(), first_time_, staged_steps_);
    }
  }
  staged_steps_ = 0;
}

void StepRecorder::Write(const To& to, const std::byte* from, int64_t t,
                         int64_t steps) {
  if (to.width == 0) return;
  TransposeRows({.from = from,
                 .steps = steps,
                 .lanes = batch_.batch_shape()[0],
                 .width = to.width,
                 .to = to.batch + t * to.width,
                 .to_lane_bytes = to.width * batch_.batch_shape()[1]});
}

}  // namespace rill
