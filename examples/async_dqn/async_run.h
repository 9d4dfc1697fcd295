// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_
#define RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/collectors/workers/worker_deaths.h"
#include "rill/examples/async_dqn/resources.h"
#include "rill/recorder/flight_recorder.h"
#include "rill/telemetry/progress_line.h"

namespace rill::async_dqn {

struct RunOptions {
  std::string replay_directory;  // Required; new or empty.
  // A new folder for curve.csv, curve.svg and TensorBoard events. Empty: none.
  std::string run_dir = {};
  int64_t workers = 8;  // Processes.
  uint64_t seed = 0;
  // One worker, chosen at random, is killed (SIGKILL) so often. Zero: one a
  // batch. Infinite: none.
  absl::Duration kill_every = absl::Seconds(1);
  // The run goes on for so long, whatever it has reached.
  absl::Duration at_least = absl::ZeroDuration();
  int64_t max_frames = 10'000'000;  // A run that is not solved ends there.
  int64_t frames_per_update = 4;    // The learner's.
  double solve_return = 475;
  // So often RunReport::resources gets an entry. Zero: one a batch.
  absl::Duration watch_every = absl::Minutes(1);
  // Shows evaluations, resources and where the run stands. Not owned; null:
  // nothing is shown.
  ProgressLine* progress = nullptr;
  // Records the run, or repeats one of equal options: then no worker is started
  // or killed, and the directories are others. Not owned; null: none.
  FlightRecorder* recorder = nullptr;
};

struct RunReport {
  bool is_solved = false;
  int64_t solved_at = -1;        // Frames; -1: it is not.
  double evaluation_return = 0;  // Of 100 greedy episodes.
  int64_t frames = 0;
  int64_t updates = 0;
  int64_t kills = 0;
  int64_t restarts = 0;
  WorkerDeaths deaths = {};
  // Slices of 8 steps from the replay in which the steps of one trajectory do
  // not follow one another.
  int64_t slices = 0;
  int64_t broken_slices = 0;
  // Trajectories in the replay that end without being done: those that were
  // open when their worker was killed.
  int64_t cuts = 0;
  std::vector<Resources> resources = {};
};

// A double DQN learns CartPole-v1 from a prioritized memmap replay, while
// worker processes fill it and are killed. Errors are those of the parts;
// ABORTED where a log that is repeated ends before the run does.
absl::StatusOr<RunReport> RunAsyncDqn(const RunOptions& options);

}  // namespace rill::async_dqn

#endif  // RILL_EXAMPLES_ASYNC_DQN_ASYNC_RUN_H_
