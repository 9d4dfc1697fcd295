// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_H_
#define RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/distributed/shards/sharded_sampler.h"
#include "rill/distributed/transport/transport.h"

namespace rill::distributed_dqn {

// Serves its weights, learns from all shards, and evaluates now and then. Ends
// where an evaluation reaches `solve_return`, at `max_updates`, or at `stop`.
struct LearnerOptions {
  std::string address = {};
  std::vector<std::string> shards = {};
  // "": none. Where one is there, the learner goes on from it. One is made each
  // 500 updates, and at the end.
  std::string checkpoint_directory = {};
  uint64_t seed = 0;
  int64_t max_updates = 60'000;
  int64_t evaluate_every = 1'000;  // Updates.
  double solve_return = 475;
  const std::atomic<bool>* stop = nullptr;           // Required, not owned.
  std::function<void(const std::string&)> say = {};  // A line of progress.
};
struct LearnerReport {
  int64_t updates = 0;           // Of all starts.
  double evaluation_return = 0;  // The last one.
  bool is_solved = false;
  ShardedSampler::Stats samples = {};
};
absl::StatusOr<LearnerReport> RunLearner(std::shared_ptr<Transport> transport,
                                         const LearnerOptions& options);

}  // namespace rill::distributed_dqn

#endif  // RILL_EXAMPLES_DISTRIBUTED_DQN_LEARNER_H_
