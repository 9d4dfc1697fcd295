// SPDX-License-Identifier: Apache-2.0
// The batch is flattened to [R] rows, of which each trajectory is one run
// [begin, end). Runs are slices (views) at first. With padding each row is
// copied twice, by Pad and by Stack; without it once, by Cat.
#include "rill/transforms/split_trajectories.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/timeline/timeline.h"

namespace rill {
namespace {

constexpr absl::string_view kCaller = "SplitTrajectories";

constexpr int64_t kMissing = -1;

// Rows [begin, end) of one trajectory.
struct Run {
  int64_t begin = 0;
  int64_t end = 0;
};

// The trajectories of [R] rows in lanes of `time` rows. A trajectory ends with
// its lane or where is_end(row), which is not called for the last row of a
// lane: so it may look at row + 1.
template <typename IsEnd>
std::vector<Run> RunsOf(int64_t rows, int64_t time, IsEnd is_end) {
  std::vector<Run> runs;
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if ((row + 1) % time != 0 && !is_end(row)) continue;
    runs.push_back({begin, row + 1});
    begin = row + 1;
  }
  return runs;
}

// The runs by ids where the batch has them, else by done flags. Runs of missing
// steps are left out.
absl::StatusOr<std::vector<Run>> FindRuns(
    const TensorDict& flat, int64_t time,
    const SplitTrajectoriesOptions& options) {
  const int64_t rows = flat.batch_shape()[0];
  if (flat.Find(options.trajectory_key) != nullptr) {
    RILL_ASSIGN_OR_RETURN(
        const Tensor ids,
        transforms_internal::ReadLeaf(kCaller, options.trajectory_key, flat));
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckLeaf(kCaller, options.trajectory_key, ids,
                                       DType::kInt64, flat.batch_shape()));
    const int64_t* id = ids.data<int64_t>();
    std::vector<Run> runs = RunsOf(
        rows, time, [id](int64_t row) { return id[row] != id[row + 1]; });
    // The first row says whether a run is missing: a run has one id.
    std::erase_if(runs,
                  [id](const Run& run) { return id[run.begin] == kMissing; });
    return runs;
  }
  const absl::StatusOr<Tensor> ends =
      transforms_internal::ReadEnds(kCaller, options.done_key, flat);
  if (absl::IsNotFound(ends.status())) {
    return NotFound(kCaller, ": got neither \"", options.trajectory_key,
                    "\" nor \"", options.done_key, "\" nor its parts in ",
                    flat.DebugString(), ", want one of them");
  }
  RILL_RETURN_IF_ERROR(ends.status());
  const bool* const flag = ends->data<bool>();
  return RunsOf(rows, time, [flag](int64_t row) { return flag[row]; });
}

// Adds the leaves that tell the trajectories and their steps, where there are
// none.
absl::Status AddLeaves(const std::vector<Run>& runs,
                       const SplitTrajectoriesOptions& options,
                       TensorDict* flat) {
  // Ids are only missing where runs come from done flags. Then the runs cover
  // all rows, so that no element of `ids` stays unset.
  if (flat->Find(options.trajectory_key) == nullptr) {
    RILL_ASSIGN_OR_RETURN(const Tensor ids,
                          Tensor::Empty(DType::kInt64, flat->batch_shape()));
    for (size_t id = 0; id < runs.size(); ++id) {
      std::fill(ids.data<int64_t>() + runs[id].begin,
                ids.data<int64_t>() + runs[id].end, static_cast<int64_t>(id));
    }
    RILL_RETURN_IF_ERROR(flat->Set(options.trajectory_key, ids));
  }
  // A mask that is there says which steps of a slice pad. It is padded with
  // false like any other leaf, and is right as it is.
  if (const Tensor* mask = flat->Find(options.mask_key)) {
    return transforms_internal::CheckLeaf(kCaller, options.mask_key, *mask,
                                          DType::kBool, flat->batch_shape());
  }
  if (!options.pad) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const Tensor mask,
                        Tensor::Empty(DType::kBool, flat->batch_shape()));
  // Pad adds false, the zero of bool, behind each trajectory.
  std::fill_n(mask.data<bool>(), mask.num_elements(), true);
  return flat->Set(options.mask_key, mask);
}

}  // namespace

absl::StatusOr<TensorDict> SplitTrajectories(
    const TensorDict& batch, const SplitTrajectoriesOptions& options) {
  const Shape& shape = batch.batch_shape();
  if (shape.rank() == 0 || shape.num_elements() == 0) {
    return InvalidArgument(kCaller, ": batch shape: got ", shape.ToString(),
                           ", want [*B, time] of at least one step");
  }
  RILL_RETURN_IF_ERROR(transforms_internal::CheckTimeIsLast(kCaller, batch));
  // A view where the layout allows it.
  RILL_ASSIGN_OR_RETURN(TensorDict flat, batch.Reshape({shape.num_elements()}));
  RILL_ASSIGN_OR_RETURN(const std::vector<Run> runs,
                        FindRuns(flat, shape[shape.rank() - 1], options));
  if (runs.empty()) {
    return InvalidArgument(kCaller, ": \"", options.trajectory_key, "\": got ",
                           kMissing, " in all of ", shape.ToString(),
                           ", want at least one step that is not missing");
  }
  RILL_RETURN_IF_ERROR(AddLeaves(runs, options, &flat));
  int64_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.end - run.begin);
  std::vector<TensorDict> trajectories;
  for (const Run& run : runs) {
    TensorDict& steps = trajectories.emplace_back();
    RILL_ASSIGN_OR_RETURN(steps, flat.Slice(0, run.begin, run.end));
    // Without padding the runs differ in length, which Cat allows.
    if (!options.pad) continue;
    RILL_ASSIGN_OR_RETURN(
        steps, ops::Pad(steps, {ops::PadSize{.after = longest -
                                                      (run.end - run.begin)}}));
  }
  return options.pad ? Stack(trajectories, 0) : Cat(trajectories, 0);
}

}  // namespace rill
