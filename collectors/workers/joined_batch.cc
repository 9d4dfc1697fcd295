// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/joined_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/flow/trajectory_id.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::workers_internal {
namespace {

constexpr absl::string_view kMaskKey = "collector/mask";

}  // namespace

absl::StatusOr<JoinedBatch> JoinedBatch::Create(const Options& options) {
  JoinedBatch made;
  made.cat_ = options.cat;
  made.lanes_ = options.lanes;
  made.most_ = options.steps;
  const auto workers = static_cast<int64_t>(options.steps.size());
  const auto [least, most] =
      std::minmax_element(options.steps.begin(), options.steps.end());
  made.time_ = made.is_padded()
                   ? *most
                   : std::accumulate(options.steps.begin(), options.steps.end(),
                                     int64_t{0});
  const Shape shape = {
      made.is_padded() ? workers * options.lanes : options.lanes, made.time_};
  RILL_ASSIGN_OR_RETURN(made.rows_, options.spec.Zero(shape));
  RILL_ASSIGN_OR_RETURN(made.trajectories_,
                        made.rows_.Flat<int64_t>(kTrajectoryKey));
  // Shares the rows; the mask is only in what is handed out.
  made.joined_ = made.rows_;
  // Without that every row is always a step.
  if (made.is_padded() && (options.may_be_short || *least < *most)) {
    if (made.rows_.Contains(kMaskKey)) {
      return InvalidArgument("JoinedBatch::Create: leaf \"", kMaskKey,
                             "\" of the workers: want another name; what pads "
                             "is marked there");
    }
    RILL_ASSIGN_OR_RETURN(Tensor mask, Tensor::Zeros(DType::kBool, shape));
    RILL_ASSIGN_OR_RETURN(made.mask_, mask.Flat<bool>());
    RILL_RETURN_IF_ERROR(made.joined_.Set(kMaskKey, std::move(mask)));
  }
  std::vector<std::string> names = {std::string(kLanesName),
                                    std::string(kTimeName)};
  if (made.cat_ == CatResults::kStack) {
    RILL_ASSIGN_OR_RETURN(
        made.joined_,
        made.joined_.Reshape({workers, options.lanes, made.time_}));
    names.insert(names.begin(), std::string(kWorkersName));
  }
  RILL_RETURN_IF_ERROR(made.joined_.SetDimNames(std::move(names)));
  return made;
}

absl::StatusOr<TensorDict> JoinedBatch::Add(int64_t worker,
                                            const TensorDict& batch) {
  const Shape& shape = batch.batch_shape();
  if (shape.rank() != 2 || shape[0] != lanes_ || shape[1] < 1 ||
      shape[1] > most_[worker]) {
    return InvalidArgument("JoinedBatch::Add: batch of worker ", worker,
                           ": got ", shape.ToString(), ", want [", lanes_,
                           ", 1 to ", most_[worker], "]");
  }
  // A joined batch begins; along time its parts follow one another from 0.
  if (worker == 0) end_ = 0;
  const int64_t steps = shape[1];
  const int64_t lane = is_padded() ? worker * lanes_ : 0;
  const int64_t begin = is_padded() ? 0 : end_;
  RILL_ASSIGN_OR_RETURN(TensorDict to, rows_.Slice(0, lane, lane + lanes_));
  RILL_ASSIGN_OR_RETURN(to, to.Slice(1, begin, begin + steps));
  RILL_RETURN_IF_ERROR(to.CopyFrom(batch));
  end_ = begin + steps;
  if (is_padded()) Pad(worker, steps);
  return to;
}

void JoinedBatch::Pad(int64_t worker, int64_t steps) {
  const int64_t first = worker * lanes_ * time_;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const int64_t row = first + lane * time_;
    if (!mask_.empty()) {
      std::fill_n(mask_.begin() + row, steps, true);
      std::fill_n(mask_.begin() + row + steps, time_ - steps, false);
    }
    if (steps == time_) continue;
    const auto rows = static_cast<int64_t>(trajectories_.size());
    // Rows behind the last step have what an earlier batch left there.
    rows_.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
      const int64_t width = leaf.size_bytes() / rows;
      if (width == 0) return;
      std::memset(leaf.raw_data() + (row + steps) * width, 0,
                  (time_ - steps) * width);
    });
    std::fill_n(trajectories_.begin() + row + steps, time_ - steps, -1);
  }
}

absl::StatusOr<TensorDict> JoinedBatch::Finish() const {
  if (is_padded() || end_ == time_) return joined_;
  RILL_ASSIGN_OR_RETURN(const TensorDict added, joined_.Slice(1, 0, end_));
  // Along time a short batch ends before the memory does: its lanes have gaps
  // between them, which a copy has not.
  return added.Clone();
}

}  // namespace rill::workers_internal
