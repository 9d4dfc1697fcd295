// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/episode_counters.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/tensor.h"

namespace rill::envs_internal {
namespace {

// A count below it can be added to without overflow.
constexpr int64_t kMaxCount = int64_t{1} << 62;

template <typename T>
absl::Status SetColumn(absl::string_view key, DType dtype,
                       const std::vector<T>& column, TensorDict* state) {
  const auto lanes = static_cast<int64_t>(column.size());
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(dtype, {lanes, 1}));
  std::copy(column.begin(), column.end(), tensor.data<T>());
  return state->Set(key, std::move(tensor));
}

template <typename T>
absl::Status GetColumn(absl::string_view key, const TensorDict& state,
                       std::vector<T>* column) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, state.Get(key));
  // A state that was sliced or loaded may have gaps.
  RILL_ASSIGN_OR_RETURN(tensor, tensor.Contiguous());
  column->assign(tensor.data<T>(), tensor.data<T>() + tensor.num_elements());
  return absl::OkStatus();
}

}  // namespace

EpisodeCounters::EpisodeCounters(int64_t lanes)
    : steps(lanes), running(lanes), episode(lanes), seed(lanes) {}

absl::Status EpisodeCounters::AddTo(TensorDictSpec* spec) {
  const auto add = [spec](absl::string_view key, DType dtype) {
    return spec->Set(key, LeafSpec::Unbounded(dtype, {1}));
  };
  RILL_RETURN_IF_ERROR(add("steps", DType::kInt64));
  RILL_RETURN_IF_ERROR(add("running", DType::kBool));
  RILL_RETURN_IF_ERROR(add("episode", DType::kInt64));
  return add("seed", DType::kUInt64);
}

absl::Status EpisodeCounters::Save(TensorDict* state) const {
  RILL_RETURN_IF_ERROR(SetColumn("steps", DType::kInt64, steps, state));
  RILL_RETURN_IF_ERROR(SetColumn("running", DType::kBool, running, state));
  RILL_RETURN_IF_ERROR(SetColumn("episode", DType::kInt64, episode, state));
  return SetColumn("seed", DType::kUInt64, seed, state);
}

absl::StatusOr<EpisodeCounters> EpisodeCounters::Load(
    absl::string_view caller, const TensorDict& state,
    int64_t max_episode_steps) {
  EpisodeCounters counters(0);
  RILL_RETURN_IF_ERROR(GetColumn("steps", state, &counters.steps));
  RILL_RETURN_IF_ERROR(GetColumn("running", state, &counters.running));
  RILL_RETURN_IF_ERROR(GetColumn("episode", state, &counters.episode));
  RILL_RETURN_IF_ERROR(GetColumn("seed", state, &counters.seed));
  for (size_t lane = 0; lane < counters.steps.size(); ++lane) {
    const auto check = [&](absl::string_view what, int64_t got, int64_t max) {
      if (got >= 0 && got <= max) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat(caller, ": ", what, " of lane ", lane, ": got ", got,
                       ", want [0, ", max, "]"));
    };
    const int64_t running = counters.running[lane];
    RILL_RETURN_IF_ERROR(check("running", running, 1));
    RILL_RETURN_IF_ERROR(
        check("steps", counters.steps[lane],
              // A lane that runs is below its limit; one that is done may be at
              // it.
              max_episode_steps > 0 ? max_episode_steps - running : kMaxCount));
    RILL_RETURN_IF_ERROR(check("episode", counters.episode[lane], kMaxCount));
  }
  return counters;
}

}  // namespace rill::envs_internal
