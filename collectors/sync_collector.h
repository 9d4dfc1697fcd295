// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SYNC_COLLECTOR_H_
#define RILL_COLLECTORS_SYNC_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
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
// Devices: environment, policy and batches may each lie in host memory or on
//   one device. Leaves cross where two that meet differ. Rows of an environment
//   on the device are written straight to their places in the batch, also to
//   one in host memory, which is pinned then.
// Streams: all work on the device is on one stream, the caller's or the default
//   one; none is created. A batch is complete when it is handed out, but for
//   NextPending and no_cuda_sync. On the way the host waits for what it reads.
//   These are ends of episodes of an environment on the device (once a step,
//   and once a batch for set_truncated) and leaves that MovedPolicy moves. It
//   also waits for the copy of the batch before, whose memory it writes again.
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
    // Actions are random (from action_spec, and legal) for so many frames
    // first, rounded up to a multiple of the lanes. They carry version 0. A
    // policy with outputs acts there too: its recurrent state goes on, and its
    // log-probabilities (IsLogProbKey) are then those of the random actions.
    // Other outputs stay what it has made of the state and its own action.
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
    // Of environment, transforms, random actions and ActContext::seed, which
    // explorers mix into theirs.
    uint64_t seed = 0;
    // For WriteInfo and trajectory ids: [0, kMaxTrajectoryProducer]. None: a
    // number that no other source of this process has (flow/producers.h), or
    // that of a loaded state. Give processes that write to one sink, or runs
    // that write to one storage, numbers of their own.
    std::optional<int64_t> producer = std::nullopt;
    int64_t first_lane = 0;
    // Asked after each time step but a batch's last: true ends the batch there.
    // It is then a copy [lanes, steps], which is waited for, and the next one
    // goes on from there. Null: batches are whole.
    std::function<bool()> is_interrupted = nullptr;
    // Asked of the error of a time step: true ends the batch before that step,
    // as is_interrupted does behind one, and takes the error's place. The next
    // batch begins with this step where only the policy has failed, else with a
    // reset of all lanes. Where no step is before it the error comes back.
    // Null: an error ends no batch, it drops it.
    std::function<bool(const absl::Status&)> is_interrupt = nullptr;
    // Where the policy's leaves lie (envs/policies/moved_policy.h). None: on
    // the environment's device.
    std::optional<Device> policy_device = std::nullopt;
    Device storing_device = Device::Cpu();  // Where batches are made.
    // The stream of all work on the device; outlives the collector. Null: the
    // default stream. Policies get it (ActContext::stream).
    const Stream* stream = nullptr;
    // Next does not wait for the batch: it is complete for later work on the
    // stream, and for the host once that is synchronised. Then the next call
    // writes it behind what the caller has enqueued. No effect without a
    // device.
    bool no_cuda_sync = false;
  };

  // INVALID_ARGUMENT names a number of the options that is none of its range.
  static absl::Status CheckOptions(const Options& options);
  // INVALID_ARGUMENT names the option; a transform that does not fit the
  // environment's specs says so here, and a part that is on another device
  // than those before it. FAILED_PRECONDITION where the device has no backend.
  static absl::StatusOr<std::unique_ptr<SyncCollector>> Create(Options options);
  ~SyncCollector() override;

  const TensorDictSpec& spec() const override { return spec_; }
  int64_t frames() const override { return frames_; }
  const Times& times() const override { return times_; }
  // Rows of a whole batch.
  int64_t frames_per_batch() const { return frames_per_batch_; }

  // A batch that a sink refused comes first, and gives its number back. After
  // an error of environment, policy or transform no frame of that batch counts,
  // and the next call begins with a reset of all lanes. No statistic of a
  // transform counts its steps. An exception of theirs, or of a sink, is such
  // an error (base/catch_exceptions.h). RESOURCE_EXHAUSTED where trajectories
  // have no more numbers.
  absl::StatusOr<TensorDict> Next() override;

  // A batch that the device may still be writing.
  struct PendingBatch {
    TensorDict batch;
    // Null: it is all there. Else wait for it before anything reads the batch:
    // Stream::WaitFor(*copied), or copied->Synchronize() on the host.
    std::shared_ptr<const Event> copied;
  };
  // As Next(), without waiting for the batch. An error of the device shows
  // where it is waited for.
  absl::StatusOr<PendingBatch> NextPending();

  // A refused batch counts as collected. Where Next has handed out batches
  // since, the sink lacks these steps: its lanes are cut too. A reset on the
  // way ends episodes that the sink holds: their lanes are cut there
  // (Sink::Cut) before anything else is written. An error of Cut comes back,
  // and the next call tries again. A sink gets complete batches, also with
  // no_cuda_sync.
  absl::Status CollectInto(Sink& sink) override;
  // The frames of a run that several collectors make.
  struct RunFrames {
    int64_t before = 0;   // Of the run, where the next batch begins.
    int64_t during = 0;   // That the run makes in the time of a batch.
    int64_t earlier = 0;  // Of a collector that this one goes on for.
  };
  // For one of several: policies see the run's frames (ActContext::frames),
  // spread evenly over a batch, and init_random_frames counts the earlier ones
  // too. Batches count on from there until the next call. Without one, and
  // after LoadState, the run's frames are this collector's. The collectors with
  // workers call it in theirs.
  void SetRunFrames(const RunFrames& run);
  void Stop() override { is_stopped_.store(true, std::memory_order_relaxed); }

  // Both wait for the stream.
  // Everything that the next batch depends on, except the policy: environment,
  // transforms, roots, counters, seed. FAILED_PRECONDITION, unchanged, where
  // Load meets a state of another environment or other transforms. Where the
  // environment cannot save its state (UNIMPLEMENTED), `episodes_continue` in
  // the state is false and the next batch begins fresh episodes, of a seed that
  // follows from seed and frames.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

  // The statistics of the transforms (StepPlan::statistics) over all batches
  // made: `transforms/<i>/name` and `transforms/<i>/state` for those of
  // `transforms` that have some; of a VecNorm, what ReadVecNorm reads.
  absl::StatusOr<TensorDict> TransformStates() const;
  // Goes on with other ones: the next batch begins with a reset of all lanes,
  // so that no row mixes two scales. Episodes that the sink holds open are cut
  // there. FAILED_PRECONDITION, unchanged, where they are of other transforms.
  absl::Status LoadTransformStates(const TensorDict& states);

 private:
  struct Loop;  // What a time step needs.

  explicit SyncCollector(Options options);

  absl::Status MakeLoop();
  // Finds the device and its stream.
  absl::Status PlanDevices();
  absl::Status MakeBatch();
  absl::Status AwaitStream() const;
  absl::Status CheckStopped();
  // The root that was saved. FAILED_PRECONDITION where it does not fit.
  absl::StatusOr<TensorDict> RootOf(const TensorDict& state) const;
  // The next batch is recorded there.
  absl::Status RecordInto(const TensorDict& batch, bool is_lent);
  absl::Status RecordIntoOwn();
  absl::Status RecordIntoSink(Sink& sink);
  absl::StatusOr<PendingBatch> NextBatch(bool waits);
  absl::Status CollectBatch(bool waits);
  // The host has written what it writes to a batch on the device.
  absl::Status EndBatch(bool waits);
  // The next batch begins with a reset of all lanes.
  void ResetAll();
  // The same, as the steps of a batch that was begun are lost.
  absl::Status DropBatch();
  absl::Status CollectStep(int64_t t);
  // The batch to hand out: the one that is recorded into, or a short one.
  const TensorDict& Made() const;
  // Writes the lane's trajectory to the batch, up to time `t`.
  void WriteTrajectory(int64_t lane, int64_t t);
  void WriteOwnLeaves();
  // Does what set_truncated says.
  absl::Status TruncateEnd();
  // Where the batch was cut short: the steps that it has become short_batch.
  absl::Status CopyShortBatch();
  absl::Status CutIfDue(Sink& sink);
  absl::Status CheckRefused(const TensorDict& batch) const;
  // Takes the batch of a loaded state, which CheckRefused accepts.
  absl::Status TakeRefused(const TensorDict& batch);
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
