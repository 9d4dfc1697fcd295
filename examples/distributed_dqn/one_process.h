// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_ONE_PROCESS_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_ONE_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/examples/distributed_dqn/learner.h"

namespace rill::distributed_dqn {

// The whole run on threads of this process: its three kinds of programs know
// one another by an engine and addresses alone.
//
//   collector --RemoteSink--> shard <--ShardedSampler-- learner
//       ^                                                  |
//       +----------------RemoteWeights---------------------+
struct OneProcessOptions {
  int64_t shards = 2;
  int64_t collectors = 4;  // A multiple of the shards.
  uint64_t seed = 0;
  int64_t max_updates = 60'000;
  int64_t evaluate_every = 1'000;
  double solve_return = 475;
  // A shard is killed so often, and comes back from its last checkpoint.
  absl::Duration kill_every = absl::InfiniteDuration();
  // With kills: required. Where it has checkpoints, the run goes on from them.
  std::string checkpoint_directory = {};
  const std::atomic<bool>* stop = nullptr;           // Required, not owned.
  std::function<void(const std::string&)> say = {};  // A line of progress.
};
struct OneProcessReport {
  LearnerReport learner = {};
  int64_t rows_acknowledged = 0;  // By the shards, to the collectors.
  int64_t rows_lost = 0;          // Of these, by kills.
  int64_t rows_stored = 0;        // At the end.
  int64_t kills = 0;
};
absl::StatusOr<OneProcessReport> RunInOneProcess(
    const OneProcessOptions& options);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_ONE_PROCESS_H_
