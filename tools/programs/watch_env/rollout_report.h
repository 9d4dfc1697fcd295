// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_ROLLOUT_REPORT_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_ROLLOUT_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::watch_env {

// An episode of a rollout, or the part of it that the rollout has.
struct EpisodeFacts {
  int64_t lane = 0;
  int64_t steps = 0;
  double reward = 0;       // The sum of all rewards of the lane.
  const char* end = "on";  // "terminated", "truncated"; "on": not ended.
};

// The episodes of a batch [lanes, time] that Rollout made, in host memory, lane
// by lane.
// NOT_FOUND or INVALID_ARGUMENT where leaves of `spec` are missing or others.
absl::StatusOr<std::vector<EpisodeFacts>> FindEpisodes(const EnvSpec& spec,
                                                       const TensorDict& batch);

// Text for people: each leaf with dtype, shape and the first rows of lane 0,
// then the episodes, 20 at most.
absl::StatusOr<std::string> RolloutReport(const EnvSpec& spec,
                                          const TensorDict& batch);

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_ROLLOUT_REPORT_H_
