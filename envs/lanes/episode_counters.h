// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANES_EPISODE_COUNTERS_H_
#define RILL_ENVS_LANES_EPISODE_COUNTERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill::envs_internal {

// The place of each lane in its episodes, and its part of a saved state:
//   `steps` int64, `running` bool, `episode` int64, `seed` uint64, all
//   [lanes, 1].
// Thread-safety: thread-compatible; entries of two lanes are apart.
struct EpisodeCounters {
  explicit EpisodeCounters(int64_t lanes);

  std::vector<int64_t> steps;    // In the running episode.
  std::vector<uint8_t> running;  // An episode is on: a step may begin.
  std::vector<int64_t> episode;  // Number of the lane's next episode.
  std::vector<uint64_t> seed;

  void Save(StateWriter* state) const;
  // FAILED_PRECONDITION as StateReader's; it also names the lane and the number
  // that no lane can have where episodes have at most `max_episode_steps`; 0:
  // no limit.
  static absl::StatusOr<EpisodeCounters> Load(const StateReader& state,
                                              int64_t lanes,
                                              int64_t max_episode_steps);
};

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_LANES_EPISODE_COUNTERS_H_
