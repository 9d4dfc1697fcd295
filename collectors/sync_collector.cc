// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/sync_collector.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/devices/device_batch.h"
#include "rill/collectors/sync_collector_loop.h"
#include "rill/envs/policies/moved_policy.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/wrappers/time_limit.h"
#include "rill/flow/trajectory_id.h"
#include "rill/tensordict/dim_names.h"

// A batch is, for each time step, ResetLanes, Act, Step, Record and Carry.
// Behind the last step come the leaves that the collector writes itself,
// truncation of the end, and the copies to a device.
//
// Frames count when a whole batch is made. After an error in one its steps are
// lost: all lanes are reset before the next, and the sink cuts what it holds of
// them.
//
// A batch that a sink refused is kept (is_refused) and is offered again under
// its number before anything else is collected.

namespace rill {
namespace {

using collectors_internal::DeviceBatch;

constexpr absl::string_view kVersionKey = "policy_version";
constexpr int64_t kMaxFramesPerBatch = int64_t{1} << 40;

absl::Status RefuseOption(absl::string_view option, int64_t got,
                          absl::string_view want) {
  return InvalidArgument("SyncCollector::Create: ", option, ": got ", got,
                         ", want ", want);
}

// Adds the time since `*mark` to `*sum` and moves the mark.
void Lap(absl::Time* mark, absl::Duration* sum) {
  const absl::Time now = Clock::System().Now();
  *sum += now - *mark;
  *mark = now;
}

// Adds a leaf of the collector's own to what the step holds.
absl::Status AddOwnLeaf(absl::string_view key, const Shape& shape,
                        TensorDictSpec* spec) {
  if (spec->Find(key) != nullptr) {
    return InvalidArgument(
        "SyncCollector::Create: leaf \"", key,
        "\" of environment and transforms: want another name; the "
        "collector writes it");
  }
  return spec->Set(key, LeafSpec::Unbounded(DType::kInt64, shape));
}

bool IsInterrupt(const SyncCollector::Options& options,
                 const absl::Status& status) {
  bool is_interrupt = false;
  if (options.is_interrupt == nullptr) return false;
  CatchExceptions(
      [&] {
        is_interrupt = options.is_interrupt(status);
        return absl::OkStatus();
      },
      "is_interrupt")
      .IgnoreError();
  return is_interrupt;
}

}  // namespace

SyncCollector::SyncCollector(Options options)
    : options_(std::move(options)), loop_(std::make_unique<Loop>()) {}

// Work that is enqueued uses memory of the loop.
SyncCollector::~SyncCollector() { AwaitStream().IgnoreError(); }

absl::StatusOr<std::unique_ptr<SyncCollector>> SyncCollector::Create(
    Options options) {
  auto collector = absl::WrapUnique(new SyncCollector(std::move(options)));
  RILL_RETURN_IF_ERROR(CheckOptions(collector->options_));
  RILL_RETURN_IF_ERROR(CatchExceptions([&] { return collector->MakeLoop(); },
                                       "SyncCollector::Create"));
  return collector;
}

absl::Status SyncCollector::CheckOptions(const Options& options) {
  if (options.frames_per_batch < 1 ||
      options.frames_per_batch > kMaxFramesPerBatch) {
    return RefuseOption("frames_per_batch", options.frames_per_batch,
                        "[1, 2^40]");
  }
  if (options.total_frames < 1 && options.total_frames != -1) {
    return RefuseOption("total_frames", options.total_frames, "> 0, or -1");
  }
  if (options.init_random_frames < 0) {
    return RefuseOption("init_random_frames", options.init_random_frames,
                        ">= 0");
  }
  if (options.max_frames_per_traj < 1 && options.max_frames_per_traj != -1) {
    return RefuseOption("max_frames_per_traj", options.max_frames_per_traj,
                        "> 0, or -1");
  }
  if (const int64_t producer = options.producer.value_or(0);
      producer < 0 || producer > kMaxTrajectoryProducer) {
    return RefuseOption("producer", producer, "[0, 2^23), or none");
  }
  if (options.first_lane < 0) {
    return RefuseOption("first_lane", options.first_lane, ">= 0");
  }
  return absl::OkStatus();
}

absl::Status SyncCollector::MakeLoop() {
  Loop& loop = *loop_;
  // Below the transforms: those count and reset with the episodes that the
  // limit makes.
  if (options_.max_frames_per_traj != -1 && options_.env != nullptr) {
    RILL_ASSIGN_OR_RETURN(
        options_.env,
        MakeTimeLimit(std::move(options_.env),
                      {.max_steps = options_.max_frames_per_traj}));
  }
  RILL_ASSIGN_OR_RETURN(loop.env,
                        TransformedEnv::Create(std::move(options_.env),
                                               std::move(options_.transforms)));
  RILL_RETURN_IF_ERROR(PlanDevices());
  Policy* const policy =
      loop.moved_policy ? loop.moved_policy.get() : options_.policy;
  RILL_ASSIGN_OR_RETURN(
      loop.driver, StepDriver::Create(loop.env.get(), policy,
                                      loop.stream ? &*loop.stream : nullptr));
  if (policy != nullptr && options_.init_random_frames > 0) {
    RILL_ASSIGN_OR_RETURN(
        loop.random_log_probs,
        RandomLogProbs::Create(loop.env->spec(), policy->output_spec()));
  }
  spec_ = loop.driver.spec();
  loop.root_spec = TensorDictSpec::Of(loop.driver.root());
  loop.lanes = loop.env->lanes();
  // Rounded up: a batch has at least the frames that were asked for.
  loop.time = (options_.frames_per_batch + loop.lanes - 1) / loop.lanes;
  frames_per_batch_ = loop.lanes * loop.time;
  loop.seed = options_.seed;
  loop.SetRun({.during = frames_per_batch_});
  RILL_ASSIGN_OR_RETURN(loop.producers,
                        ProducerNumbers::OfOrLowest(options_.producer));
  loop.trajectory.assign(loop.lanes, 0);
  loop.step_versions.assign(loop.time, 0);

  loop.step_spec = spec_;
  RILL_RETURN_IF_ERROR(AddOwnLeaf(kVersionKey, {1}, &spec_));
  RILL_RETURN_IF_ERROR(AddOwnLeaf(kTrajectoryKey, {}, &spec_));
  if (!options_.storing_device.is_cpu()) {
    spec_.set_device(options_.storing_device);
  }
  RILL_RETURN_IF_ERROR(MakeBatch());
  RILL_RETURN_IF_ERROR(RecordInto(loop.own_batch, /*is_lent=*/false));
  // Whatever seed the environment was made with.
  return loop.env->Seed(options_.seed);
}

absl::Status SyncCollector::PlanDevices() {
  Loop& loop = *loop_;
  const Device env = loop.env->spec().device;
  const Device acting =
      options_.policy == nullptr ? env : options_.policy_device.value_or(env);
  Device device = env;
  // Parts are in host memory or on the one device; the first that is on a
  // device says which.
  const auto add = [&device](absl::string_view option, Device place) {
    if (device.is_cpu()) device = place;
    if (place.is_cpu() || place == device) return absl::OkStatus();
    return InvalidArgument("SyncCollector::Create: ", option, ": got ",
                           place.ToString(), ", want cpu or ",
                           device.ToString(), ", where other parts of it are");
  };
  RILL_RETURN_IF_ERROR(add("policy_device", acting));
  RILL_RETURN_IF_ERROR(add("storing_device", options_.storing_device));
  if (options_.stream != nullptr && options_.stream->device() != device) {
    return InvalidArgument("SyncCollector::Create: stream: got one of ",
                           options_.stream->device().ToString(),
                           ", want one of ", device.ToString(),
                           ", where environment, policy and batches are");
  }
  if (device.is_cpu()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(
      loop.stream, Stream::Borrow(device, options_.stream == nullptr
                                              ? StreamHandle()
                                              : options_.stream->handle()));
  // A policy that acts elsewhere is another policy to the driver, which knows
  // nothing of devices but the environment's.
  if (acting == env) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(
      loop.moved_policy,
      MovedPolicy::Create(options_.policy, acting, *loop.stream));
  return absl::OkStatus();
}

absl::Status SyncCollector::MakeBatch() {
  Loop& loop = *loop_;
  const Device storing = options_.storing_device;
  if (loop.env->spec().device.is_cpu() && storing.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(loop.own_batch, spec_.Zero({loop.lanes, loop.time}));
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(loop.device_batch,
                        DeviceBatch::Create({.spec = spec_,
                                             .step_spec = loop.step_spec,
                                             .time = loop.time,
                                             .storing_device = storing},
                                            loop.driver.step(), *loop.stream));
  loop.own_batch = loop.device_batch->written();
  return absl::OkStatus();
}

absl::Status SyncCollector::AwaitStream() const {
  return loop_->stream ? loop_->stream->Synchronize() : absl::OkStatus();
}

absl::Status SyncCollector::RecordInto(const TensorDict& batch, bool is_lent) {
  Loop& loop = *loop_;
  // Steps on a device are scattered there; the host then writes only the leaves
  // that no step has.
  const bool by_host =
      loop.device_batch == nullptr || !loop.device_batch->records_on_device();
  StepRecorder recorder;
  if (by_host) {
    RILL_ASSIGN_OR_RETURN(recorder,
                          StepRecorder::Create(loop.step_spec, batch));
    RILL_RETURN_IF_ERROR(recorder.Bind(loop.driver.step()));
  }
  TensorDict leaves = batch;
  RILL_ASSIGN_OR_RETURN(const auto versions, leaves.Flat<int64_t>(kVersionKey));
  RILL_ASSIGN_OR_RETURN(const auto trajectories,
                        leaves.Flat<int64_t>(kTrajectoryKey));
  loop.ends.clear();
  if (options_.set_truncated && by_host) {
    for (const absl::string_view key : {"next/truncated", "next/done"}) {
      RILL_ASSIGN_OR_RETURN(const auto end, leaves.Flat<bool>(key));
      loop.ends.push_back(end);
    }
  }
  if (loop.device_batch != nullptr) leaves = loop.device_batch->batch();
  RILL_RETURN_IF_ERROR(
      leaves.SetDimNames({std::string(kLanesName), std::string(kTimeName)}));
  // Set together, when all of them are known: an error above leaves the batch
  // that was recorded into before.
  loop.recorder = std::move(recorder);
  loop.versions = versions;
  loop.trajectories = trajectories;
  loop.batch = std::move(leaves);
  loop.is_lent = is_lent;
  return absl::OkStatus();
}

absl::Status SyncCollector::RecordIntoOwn() {
  return loop_->is_lent ? RecordInto(loop_->own_batch, /*is_lent=*/false)
                        : absl::OkStatus();
}

absl::Status SyncCollector::RecordIntoSink(Sink& sink) {
  // A sink lends host memory, and this batch is made on the device or pinned.
  if (loop_->device_batch != nullptr) return absl::OkStatus();
  absl::StatusOr<TensorDict> lent = CatchExceptions(
      [&] {
        return sink.Reserve({loop_->lanes, loop_->time});
      },
      "Sink::Reserve");
  if (absl::IsUnimplemented(lent.status())) return RecordIntoOwn();
  RILL_RETURN_IF_ERROR(lent.status());
  return RecordInto(*lent, /*is_lent=*/true);
}

absl::Status SyncCollector::ResetLanes(int64_t t) {
  Loop& loop = *loop_;
  RILL_RETURN_IF_ERROR(loop.reset_all ? loop.driver.ResetAll()
                                      : loop.driver.ResetEnded());
  for (int64_t lane = 0; lane < loop.lanes; ++lane) {
    if (loop.driver.begun()[lane] == 0) continue;
    if (loop.next_trajectory > kMaxTrajectoryNumber) {
      return ResourceExhausted("SyncCollector::Next: trajectory: got number ",
                               loop.next_trajectory, ", want at most ",
                               kMaxTrajectoryNumber,
                               "; collect on as another producer");
    }
    // The rows so far are of the old trajectory.
    WriteTrajectory(lane, t);
    loop.trajectory[lane] =
        TrajectoryId(loop.producers.first(), loop.next_trajectory++);
  }
  loop.reset_all = false;
  Lap(&loop.mark, &times_.env);
  return absl::OkStatus();
}

// Random actions are of version 0.
absl::StatusOr<int64_t> SyncCollector::Act(const ActContext& context) {
  // Its own: each collector of a run makes its share.
  const int64_t own = loop_->run.earlier + context.step * loop_->lanes;
  const bool is_random =
      options_.policy == nullptr || own < options_.init_random_frames;
  if (!is_random) return loop_->driver.Act(context);
  // Nothing of a policy without outputs is left behind a random action.
  const bool has_outputs =
      options_.policy != nullptr && !options_.policy->output_spec().empty();
  if (has_outputs) {
    RILL_RETURN_IF_ERROR(loop_->driver.Act(context).status());
  }
  RILL_RETURN_IF_ERROR(
      WriteRandomActions(loop_->env->spec(), {.seed = loop_->seed},
                         context.step, loop_->env->step(), loop_->env->step(),
                         loop_->stream ? &*loop_->stream : nullptr));
  if (has_outputs) {
    RILL_RETURN_IF_ERROR(loop_->random_log_probs.Write(
        loop_->driver.step(), loop_->stream ? &*loop_->stream : nullptr));
  }
  return 0;
}

void SyncCollector::SetRunFrames(const RunFrames& run) { loop_->SetRun(run); }

absl::Status SyncCollector::CollectStep(int64_t t) {
  Loop& loop = *loop_;
  RILL_RETURN_IF_ERROR(ResetLanes(t));
  loop.is_acting = true;
  // These follow from frames of the run and of this collector, so a loaded
  // state draws and anneals as the run that saved it.
  RILL_ASSIGN_OR_RETURN(const int64_t version,
                        Act({.frames = loop.RunFramesAt(t),
                             .step = frames_ / loop.lanes + t,
                             .explore = options_.explore,
                             .seed = loop.seed}));
  loop.is_acting = false;
  Lap(&loop.mark, &times_.policy);

  RILL_RETURN_IF_ERROR(loop.driver.Step());
  Lap(&loop.mark, &times_.env);

  const bool by_device =
      loop.device_batch && loop.device_batch->records_on_device();
  RILL_RETURN_IF_ERROR(by_device ? loop.device_batch->Record(t)
                                 : loop.recorder.Record(t));
  loop.step_versions[t] = version;
  // One number for the batch (WriteInfo::policy_version): the newest.
  loop.newest_version =
      t == 0 ? version : std::max(loop.newest_version, version);
  // Resets come at the beginning of the next step: a batch that is not followed
  // by another begins no episode.
  RILL_RETURN_IF_ERROR(loop.driver.Carry());
  Lap(&loop.mark, &times_.other);
  return absl::OkStatus();
}

void SyncCollector::WriteTrajectory(int64_t lane, int64_t t) {
  // Ids are written when a trajectory ends, one run of rows at a time, not row
  // by row: a lane's rows lie side by side and a step's do not.
  int64_t& since = loop_->trajectory_since[lane];
  std::fill_n(loop_->trajectories.begin() + lane * loop_->time + since,
              t - since, loop_->trajectory[lane]);
  since = t;
}

void SyncCollector::WriteOwnLeaves() {
  for (int64_t lane = 0; lane < loop_->lanes; ++lane) {
    WriteTrajectory(lane, loop_->steps);
    std::copy_n(loop_->step_versions.begin(), loop_->steps,
                loop_->versions.begin() + lane * loop_->time);
  }
}

absl::Status SyncCollector::TruncateEnd() {
  Loop& loop = *loop_;
  if (!options_.set_truncated) return absl::OkStatus();
  // Rows lie on the device; the flags of the last step are read for it.
  if (loop.ends.empty()) {
    RILL_RETURN_IF_ERROR(loop.driver.ReadEnds());
    return loop.device_batch->Truncate(loop.steps - 1, loop.driver.done());
  }
  for (int64_t lane = 0; lane < loop.lanes; ++lane) {
    const int64_t row = lane * loop.time + loop.steps - 1;
    if (loop.ends[1][row]) continue;
    for (absl::Span<bool> end : loop.ends) end[row] = true;
  }
  return absl::OkStatus();
}

absl::Status SyncCollector::EndBatch(bool waits) {
  RILL_RETURN_IF_ERROR(TruncateEnd());
  Loop& loop = *loop_;
  const bool is_short = loop.steps < loop.time;
  if (loop.device_batch != nullptr) {
    RILL_ASSIGN_OR_RETURN(loop.copied, loop.device_batch->End());
    if (waits || is_short) {
      loop.copied = nullptr;
      RILL_RETURN_IF_ERROR(loop.device_batch->Await());
    }
  }
  return is_short ? CopyShortBatch() : absl::OkStatus();
}

void SyncCollector::ResetAll() {
  loop_->reset_all = true;
  // Before the first batch no sink holds anything of these lanes.
  loop_->is_cut_due = loop_->sequence > 0;
}

absl::Status SyncCollector::DropBatch() {
  // Empties the recorder: the next batch stages rows from its own beginning.
  loop_->recorder.Flush();
  ResetAll();
  if (!loop_->env->has_statistics()) return absl::OkStatus();
  return loop_->env->LoadStatistics(loop_->statistics);
}

absl::Status SyncCollector::CollectBatch(bool waits) {
  if (options_.total_frames != -1 && frames_ >= options_.total_frames) {
    return OutOfRange("SyncCollector::Next: ", frames_,
                      " frames collected, total_frames = ",
                      options_.total_frames, "; raise it to go on");
  }
  if (loop_->env->has_statistics()) {
    RILL_ASSIGN_OR_RETURN(loop_->statistics, loop_->env->Statistics());
  }
  loop_->mark = Clock::System().Now();
  // Also after an error, and before the first batch.
  loop_->reset_all = loop_->reset_all || options_.reset_at_each_batch;
  loop_->trajectory_since.assign(loop_->lanes, 0);
  loop_->steps = loop_->time;
  loop_->short_batch = TensorDict();
  if (loop_->device_batch != nullptr) {
    RILL_RETURN_IF_ERROR(loop_->device_batch->Begin())
        << "SyncCollector::Next: the batch before";
  }
  for (int64_t t = 0; t < loop_->steps; ++t) {
    const absl::Status status = CatchExceptions(
        [&]() -> absl::Status {
          RILL_RETURN_IF_ERROR(CollectStep(t));
          // Not behind the last step, which ends the batch anyway.
          if (t + 1 == loop_->steps || options_.is_interrupted == nullptr) {
            return absl::OkStatus();
          }
          return CatchExceptions(
              [&] {
                if (options_.is_interrupted()) loop_->steps = t + 1;
                return absl::OkStatus();
              },
              "is_interrupted");
        },
        "SyncCollector");
    if (status.ok() || loop_->EndBefore(t, IsInterrupt(options_, status))) {
      continue;
    }
    // A step that the policy has interrupted is done again.
    if (loop_->reset_all) {
      RILL_RETURN_IF_ERROR(DropBatch());
    }
    RILL_RETURN_IF_ERROR(status)
        << "SyncCollector::Next: step " << t << " of a batch of " << loop_->time
        << " in " << loop_->env->name();
  }
  loop_->recorder.Flush();
  WriteOwnLeaves();
  if (const absl::Status status = EndBatch(waits); !status.ok()) {
    RILL_RETURN_IF_ERROR(DropBatch());
    RILL_RETURN_IF_ERROR(status) << "SyncCollector::Next: the end of a batch";
  }
  frames_ += loop_->steps * loop_->lanes;
  loop_->run.before = loop_->RunFramesAt(loop_->steps);
  return absl::OkStatus();
}

absl::Status SyncCollector::CopyShortBatch() {
  // Batches are rarely short, so those on a device go through host memory.
  RILL_ASSIGN_OR_RETURN(const TensorDict batch, loop_->batch.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const TensorDict steps,
                        batch.Slice(1, 0, loop_->steps));
  RILL_ASSIGN_OR_RETURN(loop_->short_batch, steps.Clone());
  RILL_ASSIGN_OR_RETURN(loop_->short_batch,
                        loop_->short_batch.To(options_.storing_device));
  return absl::OkStatus();
}

const TensorDict& SyncCollector::Made() const {
  return loop_->short_batch.empty() ? loop_->batch : loop_->short_batch;
}

absl::Status SyncCollector::CheckStopped() {
  if (!is_stopped_.exchange(false, std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return absl::CancelledError(
      "SyncCollector::Next: stopped; call again to go on");
}

absl::StatusOr<TensorDict> SyncCollector::Next() {
  RILL_ASSIGN_OR_RETURN(PendingBatch pending,
                        NextBatch(/*waits=*/!options_.no_cuda_sync));
  return std::move(pending.batch);
}

absl::StatusOr<SyncCollector::PendingBatch> SyncCollector::NextPending() {
  return NextBatch(/*waits=*/false);
}

absl::StatusOr<SyncCollector::PendingBatch> SyncCollector::NextBatch(
    bool waits) {
  RILL_RETURN_IF_ERROR(CheckStopped());
  if (loop_->is_refused) {
    loop_->is_refused = false;
    // No sink will see this batch, and numbers have no gaps.
    --loop_->sequence;
    loop_->is_cut_due = loop_->sequence > 0;
    return PendingBatch{.batch = Made(), .copied = nullptr};
  }
  RILL_RETURN_IF_ERROR(RecordIntoOwn());
  RILL_RETURN_IF_ERROR(CollectBatch(waits));
  // The sink's next steps do not follow on those that it has.
  loop_->is_cut_due = loop_->sequence > 0;
  return PendingBatch{.batch = Made(), .copied = loop_->copied};
}

absl::Status SyncCollector::CutIfDue(Sink& sink) {
  if (!loop_->is_cut_due) return absl::OkStatus();
  const LaneRange lanes = {.first = options_.first_lane, .count = loop_->lanes};
  RILL_RETURN_IF_ERROR(CatchExceptions(
      [&] { return sink.Cut(loop_->producers.first(), lanes); }, "Sink::Cut"));
  loop_->is_cut_due = false;
  return absl::OkStatus();
}

absl::Status SyncCollector::CollectInto(Sink& sink) {
  RILL_RETURN_IF_ERROR(CheckStopped());
  Loop& loop = *loop_;
  if (!loop.is_refused) {
    RILL_RETURN_IF_ERROR(CutIfDue(sink));
    RILL_RETURN_IF_ERROR(RecordIntoSink(sink));
    if (const absl::Status status = CollectBatch(/*waits=*/true);
        !status.ok()) {
      CutIfDue(sink).IgnoreError();  // It stays due.
      return status;
    }
    ++loop.sequence;
    loop.is_refused = true;
    // Where the next batch begins with a reset, episodes are left open here.
    loop.is_cut_due = loop.reset_all || options_.reset_at_each_batch;
  }
  const WriteInfo info = {.producer = loop.producers.first(),
                          .first_lane = options_.first_lane,
                          .policy_version = loop.newest_version,
                          .sequence = loop.sequence,
                          .source = loop.source};
  const absl::Status written =
      CatchExceptions([&] { return sink.Write(Made(), info); }, "Sink::Write");
  if (!written.ok() && loop.is_lent && loop.short_batch.empty()) {
    // The loan may end before the batch is offered again.
    RILL_RETURN_IF_ERROR(loop.own_batch.CopyFrom(loop.batch));
    RILL_RETURN_IF_ERROR(RecordIntoOwn());
  }
  RILL_RETURN_IF_ERROR(written);
  loop.is_refused = false;
  return absl::OkStatus();
}

}  // namespace rill
