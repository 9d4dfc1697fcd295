// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_
#define RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rill::async_dqn {

struct RunOptions {
  std::string replay_directory;  // Required; new or empty.
  int64_t workers = 8;           // Processes.
  uint64_t seed = 0;
  // One worker, chosen at random, is killed (SIGKILL) so often. Infinite: none.
  absl::Duration kill_every = absl::Seconds(1);
  // The run goes on for so long, solved or not.
  absl::Duration at_least = absl::ZeroDuration();
  int64_t max_frames = 10'000'000;
  double solve_return = 475;
  // Called about every 4,096 frames, and less often once it is solved.
  std::function<void(const std::string& line)> say = nullptr;
};

struct RunReport {
  bool is_solved = false;
  double evaluation_return = 0;  // Of 100 greedy episodes.
  int64_t frames = 0;
  int64_t updates = 0;
  int64_t kills = 0;
  int64_t restarts = 0;
  // Slices of 8 steps from the replay in which the steps of one trajectory do
  // not follow one another.
  int64_t slices = 0;
  int64_t broken_slices = 0;
  // Trajectories in the replay that end without being done: those that were
  // open when their worker was killed.
  int64_t cuts = 0;
};

// A double DQN learns CartPole-v1 from a prioritized memmap replay, while
// worker processes fill it and are killed. Errors are those of the parts.
absl::StatusOr<RunReport> RunAsyncDqn(const RunOptions& options);

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_
