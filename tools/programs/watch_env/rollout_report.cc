// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/rollout_report.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::watch_env {
namespace {

constexpr int64_t kRows = 3;      // Of each leaf.
constexpr int64_t kElements = 6;  // Of each row.
constexpr size_t kEpisodes = 20;  // Shown.

// The sum of a lane's rewards at each (lane, time).
absl::StatusOr<std::vector<double>> SumRewards(const EnvSpec& spec,
                                               const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec));
  std::vector<double> sums(
      static_cast<size_t>(batch.batch_shape().num_elements()), 0);
  for (const TensorDictSpec::Leaf& leaf : rewards.leaves()) {
    RILL_ASSIGN_OR_RETURN(const auto reward,
                          batch.Flat<float>(absl::StrCat("next/", leaf.key)));
    // Rewards of several agents are summed: the lane has one return.
    const size_t width = reward.size() / std::max<size_t>(sums.size(), 1);
    for (size_t i = 0; i < reward.size(); ++i) sums[i / width] += reward[i];
  }
  return sums;
}

// The first elements of a row as text.
absl::StatusOr<std::string> RowText(const Tensor& row) {
  // One format for every dtype.
  RILL_ASSIGN_OR_RETURN(const Tensor doubles, Cast(row, DType::kFloat64));
  RILL_ASSIGN_OR_RETURN(const Tensor whole, doubles.Contiguous());
  const int64_t shown = std::min(kElements, whole.num_elements());
  std::string text;
  for (int64_t i = 0; i < shown; ++i) {
    absl::StrAppendFormat(&text, "%s%.4g", i == 0 ? "" : " ",
                          whole.data<double>()[i]);
  }
  if (shown < whole.num_elements()) absl::StrAppend(&text, " ...");
  return text;
}

absl::StatusOr<std::string> LeafText(const std::string& key,
                                     const Tensor& leaf) {
  std::string text =
      absl::StrFormat("  %-24s %-8s %-14s ", key, DTypeName(leaf.dtype()),
                      leaf.shape().ToString());
  RILL_ASSIGN_OR_RETURN(const Tensor lane, leaf.Index(0));
  const int64_t rows = std::min(kRows, lane.shape()[0]);
  for (int64_t t = 0; t < rows; ++t) {
    RILL_ASSIGN_OR_RETURN(const Tensor row, lane.Index(t));
    RILL_ASSIGN_OR_RETURN(const std::string values, RowText(row));
    absl::StrAppend(&text, t == 0 ? "" : " | ", values);
  }
  if (rows < lane.shape()[0]) absl::StrAppend(&text, " | ...");
  absl::StrAppend(&text, "\n");
  return text;
}

}  // namespace

absl::StatusOr<std::vector<EpisodeFacts>> FindEpisodes(
    const EnvSpec& spec, const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const std::vector<double> rewards,
                        SumRewards(spec, batch));
  RILL_ASSIGN_OR_RETURN(const auto terminated,
                        batch.Flat<bool>("next/terminated"));
  RILL_ASSIGN_OR_RETURN(const auto truncated,
                        batch.Flat<bool>("next/truncated"));
  const int64_t steps =
      static_cast<int64_t>(rewards.size()) / std::max<int64_t>(spec.lanes, 1);
  std::vector<EpisodeFacts> episodes;
  for (int64_t lane = 0; lane < spec.lanes; ++lane) {
    EpisodeFacts now = {.lane = lane};
    for (int64_t t = 0; t < steps; ++t) {
      const auto i = static_cast<size_t>(lane * steps + t);
      ++now.steps;
      now.reward += rewards[i];
      // The last episode of a lane is listed though it goes on.
      if (terminated[i] || truncated[i]) {
        // Both at once is an end of the task.
        now.end = terminated[i] ? "terminated" : "truncated";
      } else if (t + 1 < steps) {
        continue;
      }
      episodes.push_back(now);
      now = {.lane = lane};
    }
  }
  return episodes;
}

absl::StatusOr<std::string> RolloutReport(const EnvSpec& spec,
                                          const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(const std::vector<EpisodeFacts> episodes,
                        FindEpisodes(spec, batch));
  std::string text = absl::StrCat(
      spec.name, ": rollout [lanes, time] = ", batch.batch_shape().ToString(),
      "\nleaves, with the first rows of lane 0:\n");
  for (const std::string& key : batch.LeafKeys()) {
    RILL_ASSIGN_OR_RETURN(const std::string leaf,
                          LeafText(key, *batch.Find(key)));
    absl::StrAppend(&text, leaf);
  }
  absl::StrAppend(&text, "episodes:\n  lane  steps      return  end\n");
  for (size_t i = 0; i < std::min(kEpisodes, episodes.size()); ++i) {
    const EpisodeFacts& episode = episodes[i];
    absl::StrAppendFormat(&text, "  %4d %6d %11.6g  %s\n", episode.lane,
                          episode.steps, episode.reward, episode.end);
  }
  if (episodes.size() > kEpisodes) {
    absl::StrAppend(&text, "  and ", episodes.size() - kEpisodes, " more\n");
  }
  return text;
}

}  // namespace rill::watch_env
