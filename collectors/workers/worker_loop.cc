// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_loop.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/inference/inference_client.h"
#include "rill/collectors/repeats/worker_collector.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/dict_bytes.h"
#include "rill/collectors/workers/statistics_slots.h"
#include "rill/collectors/workers/worker_board.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/formats/spec_json.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill::workers_internal {
namespace {

// Where a process tells that it has found no memory.
std::atomic<WorkerBoard*> memory_board = nullptr;
int64_t memory_worker = 0;

// A handler of `new`.
void NoteNoMemory() {
  if (WorkerBoard* const board = memory_board.load()) {
    board->NoteMemory(memory_worker, true);
  }
  std::set_new_handler(nullptr);  // It fails as ever.
}

// Another sink, whose Write comes behind a function.
class SinkBehind final : public Sink {
 public:
  using Function = std::function<absl::Status(const WriteInfo&)>;

  SinkBehind(std::unique_ptr<Sink> sink, Function before_write)
      : sink_(std::move(sink)), before_write_(std::move(before_write)) {}

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    RILL_RETURN_IF_ERROR(before_write_(info));
    return sink_->Write(batch, info);
  }
  absl::Status Cut(int64_t producer, LaneRange lanes) override {
    return sink_->Cut(producer, lanes);
  }
  absl::Status Flush() override { return sink_->Flush(); }
  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    return sink_->Reserve(shape);
  }

 private:
  const std::unique_ptr<Sink> sink_;
  const Function before_write_;
};

class Worker {
 public:
  Worker(WorkerSocket socket, const WorkerFunction& make, bool is_process,
         WorkerErrors* errors)
      : socket_(std::move(socket)),
        make_(make),
        is_process_(is_process),
        errors_(errors) {}

  // Until the collector goes, or there is no memory: the only errors.
  absl::Status Run() {
    while (true) {
      // Looks before each batch, waits without one to collect.
      RILL_ASSIGN_OR_RETURN(
          std::optional<WorkerSocket::Message> message,
          socket_.Receive(batches_ > 0 ? absl::InfinitePast()
                                       : absl::InfiniteFuture()));
      if (message.has_value()) {
        RILL_RETURN_IF_ERROR(Answer(*std::move(message)));
      } else {
        RILL_RETURN_IF_ERROR(Collect());
      }
    }
  }

 private:
  absl::Status Send(MessageKind kind, absl::string_view bytes) {
    return socket_.Send(kind, bytes, absl::InfiniteFuture());
  }

  absl::Status SendError(MessageKind kind, const absl::Status& error) {
    if (errors_ != nullptr) errors_->Add(error);
    return Send(kind,
                Pack(static_cast<int64_t>(error.code()), error.message()));
  }

  // An error of a command is the answer; one of the socket ends the loop.
  absl::Status Answer(WorkerSocket::Message message) {
    const absl::Status done = CatchExceptions(
        [&] { return Do(std::move(message)); }, "WorkerFunction");
    if (done.ok()) return done;
    if (HasNoMemory(done)) return EndWithoutMemory(done);
    return SendError(MessageKind::kRefused, done);
  }

  // Whether it is for want of memory that a process has failed. What has eaten
  // it may never give it back, so another process is to go on.
  bool HasNoMemory(const absl::Status& error) const {
    return is_process_ && absl::IsResourceExhausted(error) &&
           board_ != nullptr && board_->HasNoMemory(start_.worker);
  }
  absl::Status EndWithoutMemory(const absl::Status& error) {
    RILL_RETURN_IF_ERROR(Send(MessageKind::kNoMemory, error.message()));
    return error;
  }

  // Errors are answers too.
  absl::Status Do(WorkerSocket::Message message) {
    switch (message.kind) {
      case MessageKind::kInference: {
        RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<int64_t>(message.bytes));
        RILL_ASSIGN_OR_RETURN(const int fd, Keep(message));
        RILL_ASSIGN_OR_RETURN(inference_,
                              inference_internal::InferenceClient::Attach(
                                  fd, parts.second, /*client=*/parts.first));
        return absl::OkStatus();
      }
      case MessageKind::kStart:
        return Start(std::move(message));
      case MessageKind::kBoard: {
        RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<int64_t>(message.bytes));
        RILL_ASSIGN_OR_RETURN(const int fd, Keep(message));
        RILL_ASSIGN_OR_RETURN(board_, WorkerBoard::Attach(fd, parts.first));
        return absl::OkStatus();
      }
      case MessageKind::kStatistics: {
        RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<int64_t>(message.bytes));
        RILL_ASSIGN_OR_RETURN(const int fd, Keep(message));
        RILL_ASSIGN_OR_RETURN(
            slots_, StatisticsSlots::Attach(fd, parts_.fresh, start_.workers,
                                            parts.first));
        return absl::OkStatus();
      }
      case MessageKind::kChannel:
        return Attach(std::move(message));
      case MessageKind::kCollect: {
        RILL_ASSIGN_OR_RETURN(const auto parts,
                              Unpack<WorkerAsk>(message.bytes));
        const WorkerAsk& ask = parts.first;
        // Also of batches that were asked for before and are not begun.
        round_ = ask.round;
        run_ = {.before = ask.before - batches_ * ask.during,
                .during = ask.during,
                .earlier = ask.earlier};
        batches_ += ask.batches;
        return absl::OkStatus();
      }
      case MessageKind::kPause:
        batches_ = 0;
        return Send(MessageKind::kPaused, "");
      case MessageKind::kSave: {
        batches_ = 0;
        RILL_ASSIGN_OR_RETURN(const TensorDict state,
                              parts_.collector->SaveState());
        RILL_ASSIGN_OR_RETURN(const std::string bytes, DictToBytes(state));
        return Send(MessageKind::kState, bytes);
      }
      case MessageKind::kLoad: {
        batches_ = 0;
        RILL_ASSIGN_OR_RETURN(const TensorDict state,
                              DictFromBytes(message.bytes));
        RILL_RETURN_IF_ERROR(parts_.collector->LoadState(state));
        return Send(MessageKind::kLoaded, "");
      }
      case MessageKind::kLoadStatistics: {
        batches_ = 0;
        RILL_ASSIGN_OR_RETURN(const TensorDict statistics,
                              DictFromBytes(message.bytes));
        RILL_RETURN_IF_ERROR(parts_.collector->LoadTransformStates(statistics));
        return Send(MessageKind::kLoaded, "");
      }
      default:
        return Internal("a message for the collector");
    }
  }

  // A descriptor of its own, which outlives the message.
  static absl::StatusOr<int> Keep(const WorkerSocket::Message& message) {
    if (message.descriptor == nullptr) {
      return Internal("a message without its descriptor");
    }
    const int fd = fcntl(message.descriptor->get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
      return ResourceExhausted("fcntl: ", std::strerror(errno));
    }
    return fd;
  }

  absl::Status Start(WorkerSocket::Message message) {
    RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<WorkerStart>(message.bytes));
    start_ = parts.first;
    if (board_ == nullptr) return Internal("a start without a board");
    const WorkerStart& start = start_;
    const absl::string_view argument =
        parts.second.substr(0, start.argument_bytes);
    const absl::string_view statistics = parts.second.substr(argument.size());
    ExpectMemory();
    // None: the collector has no weights.
    if (message.descriptor != nullptr) {
      RILL_ASSIGN_OR_RETURN(const int fd, Keep(message));
      RILL_ASSIGN_OR_RETURN(weights_, WeightStore::AttachReader(fd));
    }
    TensorDict begun;
    if (!statistics.empty()) {
      RILL_ASSIGN_OR_RETURN(begun, DictFromBytes(statistics));
    }
    WorkerCollector::Options options = {.start = start,
                                        .argument = argument,
                                        .statistics = std::move(begun),
                                        .weights = weights_.get(),
                                        .inference = inference_.get()};
    // Asked after each step.
    if (start.is_preemptive || start.times_steps) {
      options.is_interrupted = [this] {
        if (start_.times_steps) BeginStep();
        return start_.is_preemptive && board_->IsInterrupted(round_);
      };
    }
    RILL_ASSIGN_OR_RETURN(parts_,
                          WorkerCollector::Create(make_, std::move(options)));
    RILL_ASSIGN_OR_RETURN(const std::string spec,
                          SpecToJson(parts_.collector->spec()));
    RILL_ASSIGN_OR_RETURN(const std::string fresh, DictToBytes(parts_.fresh));
    return Send(
        MessageKind::kReady,
        Pack(WorkerReady{.lanes = parts_.lanes,
                         .spec_bytes = static_cast<int64_t>(spec.size())},
             spec + fresh));
  }

  void BeginStep() { board_->BeginStep(start_.worker, Clock::Steady().Now()); }

  // Forgets that `new` has found no memory before.
  void ExpectMemory() {
    if (!is_process_) return;
    memory_worker = start_.worker;
    memory_board = board_.get();
    board_->NoteMemory(start_.worker, false);
    std::set_new_handler(NoteNoMemory);
  }

  absl::Status Attach(WorkerSocket::Message message) {
    RILL_ASSIGN_OR_RETURN(const auto parts, Unpack<int64_t>(message.bytes));
    if (parts_.collector == nullptr) {
      return Internal("a channel without a collector");
    }
    RILL_ASSIGN_OR_RETURN(const int fd, Keep(message));
    RecordChannel::Options options;
    // The channel checks that both ends mean the same layout.
    options.spec = parts_.collector->spec();
    RILL_ASSIGN_OR_RETURN(
        sink_, RecordChannel::AttachProducer(fd, parts.first, options));
    // Behind what this one has written comes the batch itself.
    sink_ = std::make_unique<SinkBehind>(
        std::move(sink_), [this](const WriteInfo& info) -> absl::Status {
          // A batch that is offered again was made for its first offer's run.
          if (info.sequence != noted_) {
            noted_ = info.sequence;
            board_->NoteRun(start_.worker, noted_, batch_run_.before);
          }
          if (slots_ == nullptr) return absl::OkStatus();
          RILL_ASSIGN_OR_RETURN(const TensorDict statistics,
                                parts_.collector->TransformStates());
          return slots_->Write(start_.worker, info.sequence, statistics);
        });
    return absl::OkStatus();
  }

  absl::Status Collect() {
    if (sink_ == nullptr) {
      batches_ = 0;
      return SendError(MessageKind::kFailed,
                       Internal("no channel to collect into"));
    }
    if (start_.times_steps) BeginStep();
    batch_run_ = run_;
    parts_.collector->SetRunFrames(run_);
    run_.before += run_.during;
    absl::Status collected;
    if (parts_.before_batch != nullptr) {
      collected = CatchExceptions([this] { return parts_.before_batch(); },
                                  "WorkerParts::before_batch");
    }
    if (collected.ok()) {
      collected = CatchExceptions(
          [this] { return parts_.collector->CollectInto(*sink_); },
          "SyncCollector");
    }
    if (start_.times_steps) board_->EndSteps(start_.worker);
    if (HasNoMemory(collected)) return EndWithoutMemory(collected);
    if (!collected.ok()) {
      batches_ = 0;
      return SendError(MessageKind::kFailed, collected);
    }
    // The batch is in the channel before the message: a collector that has read
    // it finds the batch.
    --batches_;
    ExpectMemory();
    const Source::Times& times = parts_.collector->times();
    return Send(
        MessageKind::kBatch,
        Pack(WorkerTimes{.env_ns = absl::ToInt64Nanoseconds(times.env),
                         .policy_ns = absl::ToInt64Nanoseconds(times.policy),
                         .other_ns = absl::ToInt64Nanoseconds(times.other)}));
  }

  WorkerSocket socket_;
  const WorkerFunction& make_;
  const bool is_process_;
  WorkerErrors* const errors_;
  // Each outlives the next.
  std::unique_ptr<WorkerBoard> board_;
  std::unique_ptr<StatisticsSlots> slots_;
  std::unique_ptr<WeightStore::Reader> weights_;
  std::unique_ptr<Policy> inference_;
  WorkerCollector parts_;
  std::unique_ptr<Sink> sink_;
  WorkerStart start_ = {};
  int64_t batches_ = 0;                 // Asked for, and not collected.
  int64_t round_ = 0;                   // Of these.
  SyncCollector::RunFrames run_;        // Of the next one.
  SyncCollector::RunFrames batch_run_;  // Of the one at hand.
  int64_t noted_ = 0;                   // The last batch that NoteRun told of.
};

}  // namespace

void RunWorker(WorkerSocket socket, const WorkerFunction& make, bool is_process,
               WorkerErrors* errors) {
  Worker(std::move(socket), make, is_process, errors).Run().IgnoreError();
  memory_board = nullptr;
}

absl::StatusOr<std::thread> StartWorkerThread(
    WorkerSocket socket, const WorkerFunction& make,
    std::shared_ptr<WorkerErrors> errors) {
  // std::thread says by an exception that there is none.
  const auto start = [&]() -> absl::StatusOr<std::thread> {
    return std::thread([socket = std::move(socket), &make, errors]() mutable {
      RunWorker(std::move(socket), make, /*is_process=*/false, errors.get());
    });
  };
  auto thread = CatchExceptions(start, "its thread");
  if (thread.ok()) return thread;
  return ResourceExhausted(thread.status().message());
}

}  // namespace rill::workers_internal
