// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SYNC_COLLECTOR_H_
#define RILL_COLLECTORS_SYNC_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Steps an environment with a policy in the calling thread and hands out
// batches of [lanes, time].
//
// A batch holds the leaves of the environment's steps and those that transforms
// and policy write. `policy_version` is int64 [lanes, time, 1].
// `collector/traj_ids` is int64 [lanes, time]: no other episode of this
// collector, or of a producer of another number, has the same
// (flow/trajectory_id.h). Lanes that are done are reset; `next` keeps the true
// final observation. Episodes go on from batch to batch.
//
// Thread-safety: that of Source.
// Device/Stream: batches are in host memory. Leaves of an environment on a
//   device are copied there on its default stream, with one wait a step.
// Cost: one environment step, one policy call and one copy of the leaves a time
//   step. Batches reuse one array a leaf. After the first batch only the
//   dictionary that Next returns (not its bytes) allocates. A sink that lends
//   memory (Sink::Reserve) has the steps recorded there.
//
// Example (SyncCollectorTest.Example runs it):
//   SyncCollector::Options options;
//   RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = 16}));
//   options.frames_per_batch = 1024;
//   RILL_ASSIGN_OR_RETURN(auto collector,
//                         SyncCollector::Create(std::move(options)));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, collector->Next());  // [16, 64]
class SyncCollector final : public Source {
 public:
  struct Options {
    std::unique_ptr<Env> env = nullptr;  // Required.
    Policy* policy = nullptr;  // Not owned. Null: random actions for ever.
    // Beside the environment, in this order (envs/transformed_env.h).
    std::vector<std::unique_ptr<StepTransform>> transforms = {};
    // Rows a batch, > 0; rounded up to a multiple of the lanes.
    int64_t frames_per_batch = 0;
    // > 0: Next is OUT_OF_RANGE once so many are collected; batches are always
    // whole, so the last one may go beyond. -1: never.
    int64_t total_frames = -1;
    // Actions are random (from action_spec) for so many frames first, rounded
    // up to a multiple of the lanes. They carry version 0.
    int64_t init_random_frames = 0;
    bool explore = true;  // ActContext::explore.
    // > 0: the step of this number of an episode is truncated, and so done
    // (envs/wrappers/time_limit.h, between `env` and `transforms`). -1: none.
    int64_t max_frames_per_traj = -1;
    // Each batch begins with a reset of all lanes. Episodes that the sink holds
    // open are cut there (Sink::Cut).
    bool reset_at_each_batch = false;
    // The last step of each batch is truncated, and so done, where it is not
    // done. The episode goes on in the next batch.
    bool set_truncated = false;
    uint64_t seed = 0;  // Of environment and random actions.
    // For WriteInfo and trajectory ids: [0, kMaxTrajectoryProducer].
    int64_t producer = 0;
    int64_t first_lane = 0;
    // Asked after each time step but a batch's last: true ends the batch there.
    // It is then a copy [lanes, steps], and the next one goes on from there.
    // Null: batches are whole.
    std::function<bool()> is_interrupted = nullptr;
  };

  // INVALID_ARGUMENT names the option; a transform that does not fit the
  // environment's specs says so here.
  static absl::StatusOr<std::unique_ptr<SyncCollector>> Create(Options options);
  ~SyncCollector() override;

  const TensorDictSpec& spec() const override { return spec_; }
  int64_t frames() const override { return frames_; }
  const Times& times() const override { return times_; }
  // Rows of a whole batch.
  int64_t frames_per_batch() const { return frames_per_batch_; }

  // A batch that a sink refused comes first, and gives its number back. After
  // an error of environment, policy or transform no frame of that batch counts,
  // and the next call begins with a reset of all lanes. The state of a
  // transform may have learned from steps of the lost batch. RESOURCE_EXHAUSTED
  // where trajectories have no more numbers.
  absl::StatusOr<TensorDict> Next() override;
  // A refused batch counts as collected. A reset on the way ends episodes that
  // the sink holds: their lanes are cut there (Sink::Cut) before anything else
  // is written. An error of Cut comes back, and the next call tries again.
  absl::Status CollectInto(Sink& sink) override;
  void Stop() override { is_stopped_.store(true, std::memory_order_relaxed); }

  // Everything that the next batch depends on, except the policy: environment,
  // transforms, roots, counters, seed. FAILED_PRECONDITION, unchanged, where
  // Load meets a state of another environment or other transforms. Where the
  // environment cannot save its state (UNIMPLEMENTED), `episodes_continue` in
  // the state is false and the next batch begins fresh episodes, of a seed that
  // follows from seed and frames.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  struct Loop;  // What a time step needs.

  explicit SyncCollector(Options options);

  absl::Status CheckOptions() const;
  absl::Status MakeLoop();
  absl::Status CheckStopped();
  // The root that was saved. FAILED_PRECONDITION where it does not fit.
  absl::StatusOr<TensorDict> RootOf(const TensorDict& state) const;
  // The next batch is recorded there.
  absl::Status RecordInto(const TensorDict& batch, bool is_lent);
  absl::Status RecordIntoOwn();
  absl::Status RecordIntoSink(Sink& sink);
  absl::Status CollectBatch();
  absl::Status CollectStep(int64_t t);
  bool IsInterrupted() const {
    return options_.is_interrupted != nullptr && options_.is_interrupted();
  }
  // The batch to hand out: the one that is recorded into, or a short one.
  const TensorDict& Made() const;
  // Writes the lane's trajectory to the batch, up to time `t`.
  void WriteTrajectory(int64_t lane, int64_t t);
  void WriteOwnLeaves();
  // Does what set_truncated says.
  void TruncateEnd();
  // Drops the steps of the batch at hand: the next one begins with a reset.
  void BeginAnew();
  // Where the batch was cut short: the steps that it has become short_batch.
  absl::Status CopyShortBatch();
  absl::Status CutIfDue(Sink& sink);
  absl::Status CheckRefused(const TensorDict& batch) const;
  absl::Status ResetLanes(int64_t t);
  absl::StatusOr<int64_t> Act(const ActContext& context);

  Options options_;
  std::unique_ptr<Loop> loop_;
  TensorDictSpec spec_;
  int64_t frames_ = 0;
  int64_t frames_per_batch_ = 0;
  Times times_;
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_SYNC_COLLECTOR_H_
