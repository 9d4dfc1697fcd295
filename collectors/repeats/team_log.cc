// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/repeats/team_log.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/workers/worker_main.h"
#include "rill/flow/weights/weight_store.h"

namespace rill::workers_internal {
namespace {

using Kind = Decision::Kind;

// Each run of steps of the first lane, whose versions are those of all lanes.
absl::StatusOr<std::vector<Arrival::Versions>> VersionsOf(
    const TensorDict& batch, int64_t steps) {
  std::vector<Arrival::Versions> runs;
  RILL_ASSIGN_OR_RETURN(const auto versions,
                        batch.Flat<int64_t>("policy_version"));
  for (int64_t t = 0; t < steps; ++t) {
    if (runs.empty() || runs.back().version != versions[t]) {
      runs.push_back({.steps = 0, .version = versions[t]});
    }
    ++runs.back().steps;
  }
  return runs;
}

bool IsOf(int64_t worker, const Decision& decision) {
  return !decision.numbers.empty() && decision.numbers[0] == worker;
}

}  // namespace

absl::StatusOr<TeamLog> TeamLog::Create(absl::string_view caller,
                                        const MultiCollectorOptions& options,
                                        int64_t producer) {
  TeamLog log;
  log.caller_ = std::string(caller);
  log.options_ = &options;
  log.log_ = options.recorder;
  if (log.log_ == nullptr) return log;
  RILL_ASSIGN_OR_RETURN(
      log.part_,
      log.log_->AddPart(absl::StrCat(
          caller, ": workers ", options.workers, ", seed ", options.seed,
          ", producer ", producer, ", first_lane ", options.first_lane,
          ", weights ",
          options.weights == nullptr ? -1 : options.weights->part())));
  if (!log.repeats()) return log;
  log.workers_.resize(options.workers);
  log.made_.resize(options.workers);
  log.function_ = options.worker;
  if (log.function_ != nullptr) return log;
  RILL_ASSIGN_OR_RETURN(log.function_, FindWorkerFunction(options.worker_name));
  return log;
}

absl::Status TeamLog::Refuse(absl::string_view call) const {
  if (log_ == nullptr) return absl::OkStatus();
  return FailedPrecondition(caller_, "::", call,
                            ": recorder: got one, want none: a repeat cannot "
                            "begin at a state or go on from one");
}

absl::Status TeamLog::Note(Decision::Kind kind,
                           absl::Span<const int64_t> numbers) {
  if (log_ == nullptr) return absl::OkStatus();
  has_waited_ = false;
  return log_->Note(kind, part_, numbers);
}

absl::Status TeamLog::NoteCut(int64_t worker, int64_t producer) {
  return Note(Kind::kCut, {worker, producer});
}

absl::Status TeamLog::NoteReplace(int64_t restarts, const WorkerDeath& death) {
  return Note(Kind::kReplace, {death.worker, restarts,
                               death.is_process ? int64_t{death.status} : -1,
                               static_cast<int64_t>(death.cause)});
}

absl::Status TeamLog::NoteArrival(int64_t worker, int64_t sequence,
                                  int64_t run_before, const TensorDict& batch) {
  if (log_ == nullptr) return absl::OkStatus();
  Arrival arrival = {.worker = worker,
                     .sequence = sequence,
                     .steps = batch.batch_shape()[1],
                     .run_before = repeats() ? run_before_ : run_before};
  RILL_ASSIGN_OR_RETURN(arrival.versions, VersionsOf(batch, arrival.steps));
  has_waited_ = false;
  return log_->Note(Kind::kArrival, part_, arrival.ToNumbers(), batch, {});
}

absl::Status TeamLog::NoteFailure(const absl::Status& error) {
  if (error.ok()) return error;
  RILL_RETURN_IF_ERROR(
      Note(Kind::kFailure, {static_cast<int64_t>(error.code())}));
  return error;
}

absl::StatusOr<bool> TeamLog::NoteStop(bool is_asked) {
  if (repeats()) is_asked = log_->IsNext(Kind::kStop, part_);
  if (is_asked) {
    RILL_RETURN_IF_ERROR(Note(Kind::kStop, {}));
  }
  return is_asked;
}

absl::StatusOr<const WorkerCollector*> TeamLog::Start(
    const WorkerStart& start, absl::string_view argument,
    const TensorDict& statistics) {
  auto& worker = workers_[start.worker];
  worker = nullptr;  // First, as it holds a reader of the weights.
  auto made = RepeatedWorker::Create(function_, {.start = start,
                                                 .argument = argument,
                                                 .statistics = statistics,
                                                 .weights = options_->weights,
                                                 .log = log_});
  made_[start.worker] = made.status();
  if (made.ok()) {
    worker = *std::move(made);
    return &worker->parts();
  }
  if (start.restarts == 0) return made.status();
  return nullptr;
}

absl::Status TeamLog::Collect(const Arrival& arrival,
                              const SyncCollector::RunFrames& run, Sink& sink,
                              Source::Times* times) {
  RepeatedWorker* const worker = workers_[arrival.worker].get();
  absl::Status collected = made_[arrival.worker];
  if (worker != nullptr) {
    const Source::Times before = worker->parts().collector->times();
    collected = worker->Collect(arrival, run, sink);
    const Source::Times& now = worker->parts().collector->times();
    times->env += now.env - before.env;
    times->policy += now.policy - before.policy;
    times->other += now.other - before.other;
    if (collected.ok() || worker->is_refused()) return collected;
  }
  return log_->Differs(absl::StrCat("an error of worker ", arrival.worker, ", ",
                                    collected.ToString()));
}

absl::StatusOr<bool> TeamLog::DrainOne(int64_t worker,
                                       const SyncCollector::RunFrames& run,
                                       Sink& sink, Source::Times* times) {
  while (true) {
    RILL_ASSIGN_OR_RETURN(const Decision next, log_->Next(part_));
    if (!IsOf(worker, next)) return false;
    if (next.kind == Kind::kCut) {
      // The sink notes it.
      RILL_RETURN_IF_ERROR(sink.Cut(worker, {}));
      continue;
    }
    if (next.kind != Kind::kArrival) return false;
    const auto arrival = Arrival::FromNumbers(next.numbers);
    if (!arrival.ok()) return log_->Differs(arrival.status().message());
    run_before_ = arrival->run_before;
    SyncCollector::RunFrames frames = run;
    frames.before = run_before_;
    RILL_RETURN_IF_ERROR(Collect(*arrival, frames, sink, times));
    return true;
  }
}

absl::StatusOr<TensorDict> TeamLog::Statistics(int64_t worker) const {
  return workers_[worker]->parts().collector->TransformStates();
}

absl::StatusOr<std::optional<WorkerDeath>> TeamLog::DeathOf(
    int64_t worker, bool has_ended, const WorkerDeath& death) const {
  if (!repeats()) {
    return has_ended ? std::make_optional(death) : std::nullopt;
  }
  RILL_ASSIGN_OR_RETURN(const Decision next, log_->Next(part_));
  if (next.kind != Kind::kReplace || !IsOf(worker, next)) return std::nullopt;
  if (next.numbers.size() != 4) {
    return log_->Differs("the end of a worker");
  }
  // Numbers that cannot be make another event than the one that is noted.
  const int64_t cause = next.numbers[3];
  return WorkerDeath{
      .worker = worker,
      .cause = cause < 0 || cause > static_cast<int64_t>(DeathCause::kOther)
                   ? DeathCause::kOther
                   : static_cast<DeathCause>(cause),
      .status = static_cast<int>(next.numbers[2]),
      .is_process = next.numbers[2] != -1};
}

absl::Status TeamLog::Wait() {
  RILL_ASSIGN_OR_RETURN(const Decision next, log_->Next(part_));
  if (next.kind == Kind::kFailure && !next.numbers.empty()) {
    return absl::AbortedError(absl::StrCat(
        caller_, ": a worker has failed here, with ",
        absl::StatusCodeToString(
            static_cast<absl::StatusCode>(next.numbers[0])),
        "; a repeat ends there, as the log does not say at which step"));
  }
  const bool is_of_workers = next.kind == Kind::kArrival ||
                             next.kind == Kind::kCut ||
                             next.kind == Kind::kReplace;
  if (!is_of_workers || next.numbers.empty() || next.numbers[0] < 0 ||
      next.numbers[0] >= options_->workers || has_waited_) {
    return log_->Differs(absl::StrCat(caller_, "'s call for a batch"));
  }
  has_waited_ = true;
  return absl::OkStatus();
}

}  // namespace rill::workers_internal
