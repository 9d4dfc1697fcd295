// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_
#define RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/envs/transformed_env.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// For SyncCollector's sources only. Thread-safety: thread-compatible.
struct SyncCollector::Loop {
  std::unique_ptr<TransformedEnv> env;
  StepDriver driver;
  TensorDictSpec step_spec;  // Of what is recorded.
  TensorDictSpec root_spec;
  int64_t lanes = 0;
  int64_t time = 0;   // Steps a whole batch.
  int64_t steps = 0;  // Of the batch at hand.
  uint64_t seed = 0;  // Of random actions.

  TensorDict own_batch;  // [lanes, time], made once.
  TensorDict batch;      // That, or one that the sink lent.
  bool is_lent = false;
  TensorDict short_batch;  // A copy of its first steps, where it was cut short.
  StepRecorder recorder;
  absl::Span<int64_t> versions;      // The batch's policy_version.
  absl::Span<int64_t> trajectories;  // The batch's collector/traj_ids.
  // With set_truncated: the batch's next/truncated and next/done.
  std::vector<absl::Span<bool>> ends;
  int64_t newest_version = 0;  // Of the batch.
  int64_t sequence = 0;        // The newest number of a batch.
  bool is_refused = false;     // The batch waits to be offered again.

  bool reset_all = true;            // Before the next step.
  bool is_cut_due = false;          // The sink holds what was left open there.
  std::vector<int64_t> trajectory;  // Of each lane's episode.
  // Written to the batch lane by lane, where rows lie side by side.
  std::vector<int64_t> step_versions;     // By time step of the batch.
  std::vector<int64_t> trajectory_since;  // By lane, the first step without.
  int64_t next_trajectory = 0;
  absl::Time mark;  // Where the time of the next part of a step begins.
};

}  // namespace rill

#endif  // RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_
