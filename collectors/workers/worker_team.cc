// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_team.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/process/poll_until.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/dict_bytes.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/formats/spec_json.h"
#include "rill/specs/layout_difference.h"

// How it works. A worker, thread or process, runs one loop (worker_loop.h).
// Commands and answers go over its pair of sockets, batches through its ring of
// the channel. A worker is asked for kDepth batches at most, for which its ring
// has room: it never waits for space, and answers a command after the batch at
// hand. The collector's thread waits for sockets only: a message or the end of
// a process makes one readable.
//
// A worker that ended keeps its entry until all that it sent is delivered
// (Deliver); then it is cut and replaced. The new one is a producer of another
// number, whose batches and trajectories begin anew, so no sink takes them for
// repeats.

namespace rill::workers_internal {
namespace {

constexpr absl::Duration kEndTimeout = absl::Seconds(2);

// How a worker differs from the first one, by lanes or by its rows' spec.
absl::Status OtherKind(int64_t lanes, absl::string_view spec,
                       int64_t first_lanes, const TensorDictSpec& first_spec) {
  if (lanes != first_lanes) {
    return InvalidArgument("lanes: got ", lanes, ", want the first worker's, ",
                           first_lanes);
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec own, SpecFromJson(spec));
  const std::string difference = LayoutDifference(own, first_spec);
  return InvalidArgument(
      "rows differ from the first worker's: ",
      difference.empty() ? "in domains or in the order of leaves" : difference);
}
// For the head of a record in the channel, and more than that.
constexpr int64_t kRecordBytes = 4096;

absl::Time In(absl::Duration time) { return Clock::Steady().Now() + time; }

// InfiniteFuture where no step is at hand.
absl::Time StepDeadline(const WorkerBoard& board, int64_t worker,
                        const MultiCollectorOptions& options) {
  return board.step_began(worker) + options.step_timeout;
}

// Which limit a worker is past: that of a step, or by whether it is ready.
std::string WhyLate(const MultiCollectorOptions& options, bool is_step,
                    bool is_ready) {
  const auto took = [](absl::string_view option, absl::Duration timeout) {
    return absl::StrCat("took longer than ", option, " = ",
                        absl::FormatDuration(timeout));
  };
  if (is_step) return took("step_timeout", options.step_timeout);
  if (is_ready) return took("batch_timeout", options.batch_timeout);
  return took("start_timeout", options.start_timeout);
}

// The info of a worker's batch, whose lanes begin with `first_lane`.
WriteInfo OfWorker(WriteInfo info, int64_t producer, uint64_t source,
                   int64_t first_lane) {
  info.producer = producer;
  info.source = source;
  info.first_lane += first_lane;
  return info;
}

// The text behind WorkerStart.
absl::StatusOr<std::string> StartText(const std::string& argument,
                                      const TensorDict& statistics) {
  if (statistics.empty()) return argument;
  RILL_ASSIGN_OR_RETURN(const std::string bytes, DictToBytes(statistics));
  return argument + bytes;
}

// Workers tell their sums since their start; adds what is new.
void AddTimes(const WorkerTimes& before, const WorkerTimes& now,
              Source::Times* times) {
  times->env += absl::Nanoseconds(now.env_ns - before.env_ns);
  times->policy += absl::Nanoseconds(now.policy_ns - before.policy_ns);
  times->other += absl::Nanoseconds(now.other_ns - before.other_ns);
}

// Rings of kDepth whole batches of `frames`, whose leaves begin at multiples of
// 64 bytes each: so a worker never waits for space.
absl::StatusOr<std::unique_ptr<RecordChannel>> MakeChannel(
    const TensorDictSpec& spec, int64_t workers, int64_t frames) {
  RILL_ASSIGN_OR_RETURN(const TensorDict row, spec.Zero({1}));
  return RecordChannel::Create(
      {.spec = spec,
       .producers = workers,
       .bytes = WorkerTeam::kDepth *
                (row.size_bytes() * frames + kRecordBytes +
                 64 * static_cast<int64_t>(spec.leaves().size()))});
}

// The same error, payloads too, with a longer text.
absl::Status Behind(absl::string_view prefix, const absl::Status& error) {
  absl::Status longer(error.code(), absl::StrCat(prefix, error.message()));
  error.ForEachPayload([&](absl::string_view type, const auto& payload) {
    longer.SetPayload(type, payload);
  });
  return longer;
}

// The error that a worker has sent. That of a thread is in `errors`.
absl::Status ErrorOf(absl::string_view bytes, WorkerErrors* errors) {
  if (errors != nullptr) return errors->Take();
  RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<int64_t>(bytes));
  return absl::Status(static_cast<absl::StatusCode>(parts.first), parts.second);
}

// Once a death, however often a call finds it.
void Count(const WorkerDeath& death, bool* is_counted, WorkerDeaths* deaths) {
  if (!std::exchange(*is_counted, true)) CountDeath(death, deaths);
}

absl::Status OpenPipe(
    absl::string_view caller,
    std::unique_ptr<base_internal::FileDescriptor> (&ends)[2]) {
  int numbers[2];
  if (pipe2(numbers, O_CLOEXEC) != 0) {
    return ResourceExhausted(caller, ": pipe: ", std::strerror(errno));
  }
  for (int i = 0; i < 2; ++i) {
    ends[i] = std::make_unique<base_internal::FileDescriptor>(numbers[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerTeam>> WorkerTeam::Create(
    std::string caller, MultiCollectorOptions options) {
  std::unique_ptr<WorkerTeam> team(
      new WorkerTeam(std::move(caller), std::move(options)));
  RILL_RETURN_IF_ERROR(CheckOptions(team->caller_, team->options_));
  RILL_RETURN_IF_ERROR(team->StartAll());
  return team;
}

int64_t WorkerTeam::Worker::HeldBatches() const {
  return std::count_if(held.begin(), held.end(), [](const HeldBatch& one) {
    return one.batch.has_value();
  });
}

WorkerTeam::~WorkerTeam() {
  // All at once: each sees the end of its socket.
  for (Worker& worker : workers_) worker.socket.reset();
  const absl::Time deadline = In(kEndTimeout);
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
    if (worker.process != nullptr) worker.process->WaitForEnd(deadline);
  }
}

int64_t WorkerTeam::frames_per_batch(int64_t worker) const {
  return ShareOf(AskedFrames(options_, worker), lanes_) * lanes_;
}

absl::Status WorkerTeam::StartAll() {
  RILL_RETURN_IF_ERROR(OpenPipe(caller_, life_));
  RILL_ASSIGN_OR_RETURN(board_, WorkerBoard::Create(options_.workers));
  workers_.resize(options_.workers);
  RILL_ASSIGN_OR_RETURN(producers_, WorkerProducers::Create(options_));
  RILL_ASSIGN_OR_RETURN(
      log_, TeamLog::Create(caller_, options_, producers_.Of(0, 0)));
  for (int64_t i = 0; i < size(); ++i) {
    RILL_RETURN_IF_ERROR(Start(i));
  }
  // All are started before the first is waited for.
  for (int64_t i = 0; i < size(); ++i) {
    while (!workers_[i].is_ready) {
      RILL_RETURN_IF_ERROR(Wait());
      if (!workers_[i].socket.has_value()) {
        return Error(i, Unavailable(workers_[i].end));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerTeam::CheckGoesOn(int64_t frames, bool is_in_round) {
  RILL_ASSIGN_OR_RETURN(
      const bool is_stopped,
      log_.NoteStop(is_stopped_.exchange(false, std::memory_order_relaxed)));
  if (is_stopped) {
    return absl::CancelledError(
        absl::StrCat(caller_, "::Next: stopped; call again to go on"));
  }
  const int64_t most = options_.total_frames;
  if (is_in_round || most == -1 || frames < most) return absl::OkStatus();
  return OutOfRange(caller_, "::Next: ", frames,
                    " frames collected, total_frames = ", most,
                    "; raise it to go on");
}

absl::Status WorkerTeam::Error(int64_t index, const absl::Status& why) const {
  return Behind(absl::StrCat(caller_, ": worker ", index, ": "), why);
}

absl::Status WorkerTeam::Start(int64_t index) {
  Worker& worker = workers_[index];
  const WorkerStart start = StartOf(options_, index, worker.restarts,
                                    producers_.Of(index, worker.restarts));
  if (log_.repeats()) return StartRepeated(start);
  RILL_ASSIGN_OR_RETURN(auto ends, WorkerSocket::MakePair());
  if (options_.worker != nullptr) {
    worker.errors = std::make_shared<WorkerErrors>();
    auto thread = StartWorkerThread(std::move(ends.second), options_.worker,
                                    worker.errors);
    if (!thread.ok()) return Error(index, thread.status());
    worker.thread = *std::move(thread);
  } else {
    auto process =
        StartWorkerProcess(options_.worker_name, options_.max_worker_bytes,
                           ends.second.fd(), life_[0]->get());
    if (!process.ok()) return Error(index, process.status());
    worker.process = *std::move(process);
  }
  worker.socket = std::move(ends.first);
  board_->Begin(index);
  worker.is_ready = false;
  worker.is_counted = false;
  worker.end.clear();
  worker.no_memory.clear();
  worker.arrived = 0;
  worker.times = {};
  // Until kReady comes; then that of a batch.
  worker.deadline = In(options_.start_timeout);
  // One that has ended again is found by Wait.
  if (options_.inference != nullptr) {
    worker.socket
        ->Send(MessageKind::kInference,
               Pack(index, options_.inference->layout()), worker.deadline,
               options_.inference->fd())
        .IgnoreError();
  }
  worker.socket
      ->Send(MessageKind::kBoard, Pack(size()), worker.deadline, board_->fd())
      .IgnoreError();
  RILL_ASSIGN_OR_RETURN(const std::string text,
                        StartText(options_.argument, statistics_.Of(index)));
  worker.socket
      ->Send(MessageKind::kStart, Pack(start, text), worker.deadline,
             options_.weights == nullptr ? -1 : options_.weights->fd())
      .IgnoreError();
  return absl::OkStatus();
}

absl::Status WorkerTeam::StartRepeated(const WorkerStart& start) {
  const auto parts =
      log_.Start(start, options_.argument, statistics_.Of(start.worker));
  if (!parts.ok()) return Error(start.worker, parts.status());
  workers_[start.worker].is_ready = true;
  workers_[start.worker].is_counted = false;
  if (lanes_ > 0) return absl::OkStatus();
  // The first one says what all have, as in ReadReady.
  spec_ = (*parts)->collector->spec();
  lanes_ = (*parts)->lanes;
  for (int64_t i = 0; i < size(); ++i) frames_per_round_ += frames_per_batch(i);
  RILL_ASSIGN_OR_RETURN(
      statistics_, WorkerStatistics::Create((*parts)->fresh, size(), kDepth));
  return absl::OkStatus();
}

void WorkerTeam::End(int64_t index, std::optional<DeathCause> cause,
                     absl::string_view why) {
  Worker& worker = workers_[index];
  const bool ends_itself = cause == DeathCause::kItself;
  WorkerDeath death = {.worker = index,
                       .cause = cause.value_or(DeathCause::kOther),
                       .is_process = worker.process != nullptr};
  // A process that hung or that nobody wants any more is killed before it can
  // see the end of its socket; another is given time.
  if (!ends_itself) worker.process.reset();
  worker.socket.reset();
  // A thread ends after its batch at hand; it cannot be killed.
  if (worker.thread.joinable()) worker.thread.join();
  worker.end = ends_itself ? "its thread has ended" : std::string(why);
  if (worker.process != nullptr) {
    worker.process->WaitForEnd(In(kEndTimeout));
    worker.end = worker.process->Kill();
    death.status = worker.process->status();
    worker.process.reset();
    if (board_->HasNoMemory(index)) {
      death.cause = DeathCause::kMemory;
      worker.end += " after it had found no memory";
      if (!worker.no_memory.empty()) worker.end += ": " + worker.no_memory;
    }
  }
  worker.deadline = absl::InfiniteFuture();
  if (!cause.has_value()) return;
  worker.death = death;
  // A recorder notes it where the worker is replaced, so it counts there.
  if (options_.recorder == nullptr) Count(death, &worker.is_counted, &deaths_);
  LOG(WARNING) << caller_ << ": worker " << index << ": " << worker.end << "; "
               << restarts_ << " of " << options_.max_restarts
               << " restarts are used";
}

absl::Status WorkerTeam::Replace(int64_t index) {
  Worker& worker = workers_[index];
  if (restarts_ >= options_.max_restarts) {
    return Error(index, Unavailable(worker.end,
                                    "; max_restarts = ", options_.max_restarts,
                                    " are used up; raise it to go on"));
  }
  RILL_RETURN_IF_ERROR(producers_.Check(index, worker.restarts + 1));
  ++restarts_;
  ++worker.restarts;
  worker.earlier_frames = worker.frames;
  worker.death = {.worker = index, .is_process = false};
  statistics_.Replace(index);
  return Start(index);
}

absl::Status WorkerTeam::ReadReady(int64_t index, absl::string_view bytes) {
  RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<WorkerReady>(bytes));
  const int64_t lanes = parts.first.lanes;
  const absl::string_view spec = parts.second.substr(0, parts.first.spec_bytes);
  const absl::string_view fresh = parts.second.substr(spec.size());
  // The first that is ready says what all must have. The size of a batch is
  // only known now, and with it that of the rings: kDepth whole batches, whose
  // leaves begin at multiples of 64 bytes each. So a worker never waits for
  // space.
  if (channel_ == nullptr) {
    RILL_ASSIGN_OR_RETURN(spec_, SpecFromJson(spec));
    spec_text_ = std::string(spec);
    fresh_bytes_ = std::string(fresh);
    lanes_ = lanes;
    int64_t most = 0;
    for (int64_t i = 0; i < size(); ++i) {
      most = std::max(most, frames_per_batch(i));
      frames_per_round_ += frames_per_batch(i);
    }
    RILL_ASSIGN_OR_RETURN(channel_, MakeChannel(spec_, size(), most));
    RILL_ASSIGN_OR_RETURN(const TensorDict statistics, DictFromBytes(fresh));
    RILL_ASSIGN_OR_RETURN(statistics_,
                          WorkerStatistics::Create(statistics, size(), kDepth));
  } else if (spec != spec_text_ || lanes != lanes_) {
    return OtherKind(lanes, spec, lanes_, spec_);
  } else if (fresh != fresh_bytes_) {
    return InvalidArgument(
        "got transforms with other statistics, want those of worker 0");
  }
  Worker& worker = workers_[index];
  worker.is_ready = true;
  worker.deadline = absl::InfiniteFuture();
  // The end of a worker is found by Wait.
  if (statistics_.fd() >= 0) {
    worker.socket
        ->Send(MessageKind::kStatistics, Pack(kDepth),
               In(options_.start_timeout), statistics_.fd())
        .IgnoreError();
  }
  worker.socket
      ->Send(MessageKind::kChannel, Pack(index), In(options_.start_timeout),
             channel_->fd())
      .IgnoreError();
  // Batches that were asked of the worker that it replaces.
  return worker.asked > 0 ? SendAsked(index, worker.asked) : absl::OkStatus();
}

absl::Status WorkerTeam::SendAsked(int64_t index, int64_t batches) {
  Worker& worker = workers_[index];
  worker.deadline = In(options_.batch_timeout);
  const int64_t before = worker.asked - batches + worker.HeldBatches();
  const WorkerAsk ask = {
      .batches = batches,
      .round = worker.round,
      // While the worker makes what it was asked for before, the others make as
      // much as they do in the time of as many batches.
      .before = worker.run_frames + before * frames_per_round_,
      .during = frames_per_round_,
      .earlier = worker.earlier_frames};
  worker.socket->Send(MessageKind::kCollect, Pack(ask), worker.deadline)
      .IgnoreError();
  return absl::OkStatus();
}

void WorkerTeam::Interrupt() {
  board_->Interrupt(round_.load(std::memory_order_relaxed));
}

absl::Status WorkerTeam::Ask(int64_t index, int64_t batches, int64_t frames) {
  Worker& worker = workers_[index];
  const int64_t more = batches - worker.asked - worker.HeldBatches();
  if (more <= 0 || log_.repeats()) return absl::OkStatus();
  worker.asked += more;
  worker.round = round_.load(std::memory_order_relaxed);
  worker.run_frames = frames;
  // ReadReady of the worker, or of the one that replaces it, sends what was
  // asked by then.
  if (!worker.socket.has_value() || !worker.is_ready) return absl::OkStatus();
  return SendAsked(index, more);
}

absl::StatusOr<bool> WorkerTeam::Deliver(int64_t index, Sink& sink) {
  Worker& worker = workers_[index];
  while (!worker.held.empty()) {
    HeldBatch& held = worker.held.front();
    const bool is_batch = held.batch.has_value();
    held.info.source = producers_.source();
    RILL_RETURN_IF_ERROR(workers_internal::Deliver(held, lanes(), sink));
    if (is_batch) statistics_.HandOut(index, std::move(held.statistics));
    worker.held.pop_front();
    if (is_batch) return true;
  }
  const int64_t first_lane = options_.first_lane + index * lanes();
  const int64_t producer = producers_.Of(index, worker.restarts);
  TensorDict statistics;
  int64_t frames = 0;
  FunctionSink named(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(statistics,
                              log_.repeats()
                                  ? log_.Statistics(index)
                                  : statistics_.Read(index, info.sequence));
        RILL_RETURN_IF_ERROR(
            log_.NoteArrival(index, info.sequence,
                             board_->run_before(index, info.sequence), batch));
        frames = batch.batch_shape().num_elements();
        return sink.Write(
            batch, OfWorker(info, producer, producers_.source(), first_lane));
      },
      [&](int64_t /*number*/, LaneRange /*lanes*/) -> absl::Status {
        // A producer writes all of its lanes.
        RILL_RETURN_IF_ERROR(log_.NoteCut(index, producer));
        return sink.Cut(producer, {first_lane, lanes()});
      });
  RILL_ASSIGN_OR_RETURN(const bool was_batch,
                        log_.repeats()
                            ? log_.DrainOne(index,
                                            {.during = frames_per_round_,
                                             .earlier = worker.earlier_frames},
                                            named, &times_)
                            : channel_->DrainOne(index, &named));
  if (was_batch) {
    statistics_.HandOut(index, std::move(statistics));
    --worker.asked;
    --worker.arrived;
    worker.frames += frames;
    return true;
  }
  RILL_ASSIGN_OR_RETURN(
      const auto death,
      log_.DeathOf(index, !worker.socket.has_value(), worker.death));
  if (death.has_value()) {
    // Nothing is left in the ring, so what the sink holds open stays so for
    // ever. A repeat has cut it.
    if (!log_.repeats()) {
      RILL_RETURN_IF_ERROR(channel_->CutIfDead(index, &named));
    }
    RILL_RETURN_IF_ERROR(log_.NoteReplace(worker.restarts, *death));
    Count(*death, &worker.is_counted, &deaths_);
    RILL_RETURN_IF_ERROR(Replace(index));
  }
  return false;
}

void WorkerTeam::PutBack(int64_t index, std::optional<TensorDict> batch,
                         const WriteInfo& info) {
  TensorDict statistics;
  if (batch.has_value()) statistics = statistics_.TakeBack(index);
  workers_[index].held.push_front(
      {std::move(batch), info, std::move(statistics)});
}

absl::Status WorkerTeam::CheckDeadlines(int64_t index) {
  Worker& worker = workers_[index];
  const absl::Time now = Clock::Steady().Now();
  if (worker.deadline > now && StepDeadline(*board_, index, options_) > now) {
    return absl::OkStatus();
  }
  const std::string why =
      WhyLate(options_, worker.deadline > now, worker.is_ready);
  if (worker.process != nullptr) {
    End(index, DeathCause::kTimeout, why);
    return absl::OkStatus();
  }
  // A thread cannot be ended, so it goes on, and so does its batch.
  worker.deadline = absl::InfiniteFuture();
  return Error(index, absl::DeadlineExceededError(why));
}

absl::Status WorkerTeam::Wait(absl::Time until, bool* has_failed) {
  if (log_.repeats()) return log_.Wait();
  std::vector<pollfd> entries;
  std::vector<int64_t> indices;
  absl::Time deadline = until;
  for (int64_t i = 0; i < size(); ++i) {
    if (!workers_[i].socket.has_value()) continue;
    entries.push_back({workers_[i].socket->fd(), POLLIN, 0});
    indices.push_back(i);
    deadline = std::min(
        {deadline, workers_[i].deadline, StepDeadline(*board_, i, options_)});
  }
  // A step may begin while this waits, of which no message tells.
  if (TimesSteps(options_)) {
    deadline = std::min(deadline, In(options_.step_timeout));
  }
  // All have ended: Deliver replaces them or says how.
  if (entries.empty()) return absl::OkStatus();
  absl::Status first;
  if (PollUntil(absl::MakeSpan(entries), deadline) < 0) {
    first = ResourceExhausted("poll of ", entries.size(),
                              " sockets: ", std::strerror(errno));
    if (has_failed != nullptr) *has_failed = true;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents != 0) first.Update(ReadAll(indices[i]));
  }
  for (const int64_t index : indices) {
    if (!workers_[index].socket.has_value()) continue;
    first.Update(CheckDeadlines(index));
  }
  return log_.NoteFailure(first);
}

absl::Status WorkerTeam::ReadAll(int64_t index) {
  Worker& worker = workers_[index];
  while (worker.socket.has_value()) {
    auto message = worker.socket->Receive(absl::InfinitePast());
    if (absl::IsUnavailable(message.status())) {
      End(index, DeathCause::kItself, "");
      return absl::OkStatus();
    }
    if (!message.ok()) return Error(index, message.status());
    if (!message->has_value()) return absl::OkStatus();
    if (const absl::Status read = Read(index, **std::move(message));
        !read.ok()) {
      return Error(index, read);
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerTeam::Read(int64_t index, WorkerSocket::Message message) {
  Worker& worker = workers_[index];
  switch (message.kind) {
    case MessageKind::kReady:
      return ReadReady(index, message.bytes);
    case MessageKind::kBatch: {
      RILL_ASSIGN_OR_RETURN(const auto parts,
                            Unpack<WorkerTimes>(message.bytes));
      const WorkerTimes& now = parts.first;
      AddTimes(worker.times, now, &times_);
      worker.times = now;
      ++worker.arrived;
      // For each batch anew: one that is made must not shorten the next one's.
      worker.deadline = worker.arrived < worker.asked
                            ? In(options_.batch_timeout)
                            : absl::InfiniteFuture();
      return absl::OkStatus();
    }
    case MessageKind::kPaused:
    case MessageKind::kState:
    case MessageKind::kLoaded:
      worker.answer = std::move(message);
      return absl::OkStatus();
    case MessageKind::kNoMemory:
      worker.no_memory = std::move(message.bytes);
      return absl::OkStatus();
    case MessageKind::kRefused:
    case MessageKind::kFailed: {
      const absl::Status why = ErrorOf(message.bytes, worker.errors.get());
      worker.deadline = absl::InfiniteFuture();
      if (message.kind == MessageKind::kFailed) {
        // The worker has dropped what it was asked for and has not made.
        worker.asked = worker.arrived;
      } else if (worker.is_ready) {
        worker.answer = std::move(message);
      } else {
        End(index, DeathCause::kOther, why.message());
      }
      return why;
    }
    default:
      return Internal("a message for a worker");
  }
}

}  // namespace rill::workers_internal
