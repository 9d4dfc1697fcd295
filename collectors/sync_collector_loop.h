// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_
#define RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/collectors/devices/device_batch.h"
#include "rill/collectors/sync_collector.h"
#include "rill/device/stream.h"
#include "rill/envs/policies/moved_policy.h"
#include "rill/envs/policies/random_log_probs.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/steps/step_recorder.h"
#include "rill/envs/transformed_env.h"
#include "rill/flow/producers.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// For SyncCollector's sources only. Thread-safety: thread-compatible.
struct SyncCollector::Loop {
  // Frames of the run before step `t` of the batch at hand. They seldom need
  // the division, which would take longer than the rest of a short step.
  int64_t RunFramesAt(int64_t t) const {
    const int64_t frames = run.before + run_step * t;
    return run_rest == 0 ? frames : frames + run_rest * t / time;
  }
  void SetRun(const RunFrames& frames) {
    run = frames;
    run_step = frames.during / time;
    run_rest = frames.during % time;
  }

  // Step `t` has failed. Whether the batch ends before it: that of an
  // interrupt, if it has steps. The next one begins with that step where only
  // the policy has failed, else with a reset.
  bool EndBefore(int64_t t, bool is_interrupt) {
    const bool was_acting = std::exchange(is_acting, false);
    reset_all = !is_interrupt || !was_acting;
    if (!is_interrupt || t == 0) return false;
    steps = t;
    return true;
  }

  std::optional<Stream> stream;  // None: nothing is on a device.
  std::unique_ptr<TransformedEnv> env;
  std::unique_ptr<MovedPolicy> moved_policy;  // Null: none is to be moved.
  StepDriver driver;
  RandomLogProbs random_log_probs;  // Of init_random_frames.
  TensorDictSpec step_spec;         // Of what is recorded.
  TensorDictSpec root_spec;
  int64_t lanes = 0;
  int64_t time = 0;      // Steps a whole batch.
  int64_t steps = 0;     // Of the batch at hand.
  uint64_t seed = 0;     // Of random actions, and ActContext::seed.
  RunFrames run;         // Of the batch at hand.
  int64_t run_step = 0;  // Of `during`, in each step, and what is left.
  int64_t run_rest = 0;
  ProducerNumbers producers;
  const uint64_t source = NewSource();

  // Null: steps and batches are in host memory.
  std::unique_ptr<collectors_internal::DeviceBatch> device_batch;
  std::shared_ptr<const Event> copied;  // PendingBatch::copied of the batch.
  // [lanes, time], made once: all that the host writes.
  TensorDict own_batch;
  TensorDict batch;  // That, or one that the sink lent, or the device's.
  bool is_lent = false;
  TensorDict short_batch;  // A copy of its first steps, where it was cut short.
  StepRecorder recorder;
  absl::Span<int64_t> versions;      // The batch's policy_version.
  absl::Span<int64_t> trajectories;  // The batch's collector/traj_ids.
  // With set_truncated: the batch's next/truncated and next/done, where the
  // host records.
  std::vector<absl::Span<bool>> ends;
  int64_t newest_version = 0;  // Of the batch.
  int64_t sequence = 0;        // The newest number of a batch.
  bool is_refused = false;     // The batch waits to be offered again.

  bool reset_all = true;            // Before the next step.
  bool is_acting = false;           // No part of a step but the policy's.
  bool is_cut_due = false;          // The sink holds what was left open there.
  std::vector<int64_t> trajectory;  // Of each lane's episode.
  // Written to the batch lane by lane, where rows lie side by side.
  std::vector<int64_t> step_versions;     // By time step of the batch.
  std::vector<int64_t> trajectory_since;  // By lane, the first step without.
  int64_t next_trajectory = 0;
  absl::Time mark;        // Where the time of the next part of a step begins.
  TensorDict statistics;  // Of the transforms, before the batch at hand.
};

}  // namespace rill

#endif  // RILL_COLLECTORS_SYNC_COLLECTOR_LOOP_H_
