// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/flight_recorder.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/recorder/flight_log.h"
#include "rill/recorder/log_clock.h"
#include "rill/recorder/log_file.h"
#include "rill/recorder/value_digest.h"

namespace rill {
namespace {

using recorder_internal::DigestOf;
using recorder_internal::LogClock;
using recorder_internal::LogFile;

constexpr char kVariable[] = "RILL_REPLAY";

// The base of recording and repeating: events are made in one place, and names
// of choices are parts.
class Recorder : public FlightRecorder {
 public:
  absl::StatusOr<int64_t> AddPart(absl::string_view description) final {
    absl::MutexLock lock(&mutex_);
    return AddPartLocked(description);
  }

  absl::Status Note(Decision::Kind kind, int64_t part,
                    absl::Span<const int64_t> numbers, const TensorDict& values,
                    absl::Span<const absl::string_view> pieces) final {
    const uint32_t digest = DigestOf(values, pieces);
    absl::MutexLock lock(&mutex_);
    return Take(kind, part, numbers, digest, &values);
  }

  absl::Status Note(Decision::Kind kind, int64_t part,
                    absl::Span<const int64_t> numbers,
                    absl::Span<const absl::string_view> pieces) final {
    const uint32_t digest = DigestOf(pieces);
    absl::MutexLock lock(&mutex_);
    return Take(kind, part, numbers, digest, nullptr);
  }

  absl::Status End() final {
    absl::MutexLock lock(&mutex_);
    return Take(Decision::Kind::kEnd, 0, {}, 0, nullptr);
  }

  int64_t events() const final {
    absl::MutexLock lock(&mutex_);
    return events_;
  }

 protected:
  // The event is what happens now.
  virtual absl::Status TakeEvent(const TensorDict* values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  absl::Status Take(Decision::Kind kind, int64_t part,
                    absl::Span<const int64_t> numbers, uint32_t digest,
                    const TensorDict* values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    event_.text.clear();
    event_.decision.kind = kind;
    event_.decision.part = part;
    event_.decision.numbers.assign(numbers.begin(), numbers.end());
    event_.decision.digest = digest;
    return TakeEvent(values);
  }

  absl::StatusOr<int64_t> AddPartLocked(absl::string_view description)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    event_.decision = {.kind = Decision::Kind::kPart, .part = parts_};
    event_.text = std::string(description);
    RILL_RETURN_IF_ERROR(TakeEvent(nullptr));
    return parts_++;
  }

  // The part of the choices of this name.
  absl::StatusOr<int64_t> PartOfChoice(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = choices_.find(name);
    if (found != choices_.end()) return found->second;
    RILL_ASSIGN_OR_RETURN(const int64_t part,
                          AddPartLocked(absl::StrCat("choice: ", name)));
    choices_.emplace(name, part);
    return part;
  }

  mutable absl::Mutex mutex_;
  FlightEvent event_ ABSL_GUARDED_BY(mutex_);  // At hand.
  int64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t parts_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> choices_ ABSL_GUARDED_BY(mutex_);
};

class Recording final : public Recorder {
 public:
  Recording(std::unique_ptr<LogFile> file, FlightEncoder encoder,
            const Clock* clock)
      : file_(std::move(file)), encoder_(encoder), clock_(clock) {}

  bool repeats() const override { return false; }
  bool IsNext(Decision::Kind /*kind*/, int64_t /*part*/) const override {
    return false;
  }
  absl::StatusOr<Decision> Next(int64_t /*part*/) override {
    return NoRepeat();
  }
  absl::Status Differs(absl::string_view /*got*/) override {
    return NoRepeat();
  }
  absl::StatusOr<std::shared_ptr<const TensorDict>> Published(
      int64_t /*part*/, int64_t /*version*/) override {
    return NoRepeat();
  }
  absl::StatusOr<int64_t> Choose(absl::string_view name,
                                 int64_t value) override {
    absl::MutexLock lock(&mutex_);
    RILL_ASSIGN_OR_RETURN(const int64_t part, PartOfChoice(name));
    RILL_RETURN_IF_ERROR(
        Take(Decision::Kind::kChoice, part, {value}, 0, nullptr));
    return value;
  }
  bool has_end() const override { return false; }
  absl::Status status() const override {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  static absl::Status NoRepeat() {
    return FailedPrecondition(
        "FlightRecorder: got a run that is recorded, want one that is "
        "repeated");
  }

  absl::Status TakeEvent(const TensorDict* /*values*/) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!status_.ok()) return absl::OkStatus();
    event_.at = clock_.Now();
    status_ = encoder_.Add(event_, &bytes_);
    if (status_.ok()) status_ = file_->Append(bytes_);
    if (status_.ok()) {
      ++events_;
    } else {
      LOG(ERROR) << "FlightRecorder: the log ends after " << events_
                 << " events, and the run goes on: " << status_;
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<LogFile> file_;
  FlightEncoder encoder_ ABSL_GUARDED_BY(mutex_);
  LogClock clock_ ABSL_GUARDED_BY(mutex_);
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class Repetition final : public Recorder {
 public:
  // `log` is the decoder's bytes. `ends_process`: as OfProgram says.
  Repetition(std::string log, FlightDecoder decoder, bool ends_process)
      : log_(std::move(log)),
        ends_process_(ends_process),
        decoder_(std::move(decoder)) {
    absl::MutexLock lock(&mutex_);
    decoder_.Extend(log_);
    LookAhead();
    has_next_ = decoder_.Next(&next_);
  }

  bool repeats() const override { return true; }

  bool IsNext(Decision::Kind kind, int64_t part) const override {
    absl::MutexLock lock(&mutex_);
    return difference_.ok() && has_next_ && next_.decision.kind == kind &&
           next_.decision.part == part;
  }

  absl::StatusOr<Decision> Next(int64_t part) override {
    absl::MutexLock lock(&mutex_);
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    if (next_.decision.part == part) return next_.decision;
    return DiffersLocked(absl::StrCat("a call of part ", part));
  }

  absl::Status Differs(absl::string_view got) override {
    absl::MutexLock lock(&mutex_);
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    return DiffersLocked(got);
  }

  absl::StatusOr<std::shared_ptr<const TensorDict>> Published(
      int64_t part, int64_t version) override {
    absl::MutexLock lock(&mutex_);
    const auto found = published_.find({part, version});
    if (found != published_.end()) return found->second;
    return NotFound("FlightRecorder::Published: version: got ", version,
                    ", want one of part ", part,
                    " that a batch to come was made with");
  }

  absl::StatusOr<int64_t> Choose(absl::string_view name,
                                 int64_t /*value*/) override {
    absl::MutexLock lock(&mutex_);
    RILL_ASSIGN_OR_RETURN(const int64_t part, PartOfChoice(name));
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    // Take says whether it is a choice, and of this name.
    const std::vector<int64_t> numbers = next_.decision.numbers;
    if (numbers.size() != 1) return DiffersLocked("a choice");
    RILL_RETURN_IF_ERROR(
        Take(Decision::Kind::kChoice, part, numbers, 0, nullptr));
    return numbers[0];
  }

  bool has_end() const override {
    absl::MutexLock lock(&mutex_);
    return has_end_;
  }
  absl::Status status() const override {
    absl::MutexLock lock(&mutex_);
    return Conclusion();
  }

 private:
  // Where the log ends. Arrivals say which weights are to be kept, and for how
  // long.
  void LookAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FlightDecoder decoder = decoder_;
    FlightEvent event;
    for (; decoder.Next(&event); ++log_events_) {
      has_end_ = event.decision.kind == Decision::Kind::kEnd;
      if (event.decision.kind != Decision::Kind::kArrival) continue;
      const auto arrival = Arrival::FromNumbers(event.decision.numbers);
      if (!arrival.ok()) continue;
      for (const auto& run : arrival->versions) {
        last_uses_[run.version] = log_events_;
      }
    }
    torn_bytes_ = decoder.torn_bytes();
  }

  absl::Status Conclusion() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RILL_RETURN_IF_ERROR(difference_);
    if (has_next_) {
      return DataLoss("FlightRecorder: got a repeat that ends after ", events_,
                      " of ", log_events_, " events, want all; the next is ",
                      FlightEventText(next_));
    }
    if (torn_bytes_ == 0) return absl::OkStatus();
    return DataLoss("FlightRecorder: ", events_,
                    " events were repeated and equal, but got ", torn_bytes_,
                    " bytes behind them that are no whole event, want none; "
                    "the log is damaged, or was cut or copied in an event");
  }

  // Where this is an error, it is that of each call from here on.
  absl::Status CheckGoesOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (difference_.ok() && has_next_) return absl::OkStatus();
    if (++refused_ >= kMostRefused && ends_process_) EndProcess();
    RILL_RETURN_IF_ERROR(difference_);
    if (has_end_) return DiffersLocked("a call behind the run's end");
    return absl::AbortedError(absl::StrCat(
        "FlightRecorder: the log ends here: ", events_,
        " events were repeated, and all were equal",
        torn_bytes_ == 0 ? ""
                         : absl::StrCat("; ", torn_bytes_,
                                        " bytes behind them are no whole "
                                        "event")));
  }

  [[noreturn]] void EndProcess() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Status status = Conclusion();
    std::fflush(nullptr);
    std::fprintf(stderr,
                 "FlightRecorder: %lld events were repeated and equal; the "
                 "process ends here, as it has tried to go on %lld times: %s\n",
                 static_cast<long long>(events_),
                 static_cast<long long>(refused_), status.ToString().c_str());
    std::_Exit(status.ok() ? 0 : 1);
  }

  absl::Status DiffersLocked(absl::string_view got)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    difference_ =
        DataLoss("FlightRecorder: event ", events_, ": got ", got, ", want ",
                 has_next_ ? FlightEventText(next_) : "none",
                 ", as the log has it; this is not the same run");
    return difference_;
  }

  absl::Status TakeEvent(const TensorDict* values) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    if (event_.decision != next_.decision || event_.text != next_.text) {
      return DiffersLocked(FlightEventText(event_));
    }
    RILL_RETURN_IF_ERROR(KeepWeights(values));
    ++events_;
    has_next_ = decoder_.Next(&next_);
    return absl::OkStatus();
  }

  // Those of this event that a later one wants; and no more those that this
  // one was the last to want.
  absl::Status KeepWeights(const TensorDict* values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Decision& decision = event_.decision;
    if (decision.kind == Decision::Kind::kPublish && values != nullptr) {
      const auto use = last_uses_.find(decision.numbers[0]);
      if (use == last_uses_.end() || use->second < events_) {
        return absl::OkStatus();
      }
      // On the host, as readers see them.
      RILL_ASSIGN_OR_RETURN(const TensorDict host, values->To(Device::Cpu()));
      RILL_ASSIGN_OR_RETURN(TensorDict copy, host.Clone());
      published_[{decision.part, decision.numbers[0]}] =
          std::make_shared<const TensorDict>(std::move(copy));
    }
    if (decision.kind != Decision::Kind::kArrival) return absl::OkStatus();
    std::erase_if(published_,
                  [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                    return last_uses_[entry.first.second] <= events_;
                  });
    return absl::OkStatus();
  }

  const std::string log_;
  const bool ends_process_;
  FlightDecoder decoder_ ABSL_GUARDED_BY(mutex_);
  FlightEvent next_ ABSL_GUARDED_BY(mutex_);
  bool has_next_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status difference_ ABSL_GUARDED_BY(mutex_);  // The first one.
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;      // Calls behind the end.
  // The whole log's.
  int64_t log_events_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t torn_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_end_ ABSL_GUARDED_BY(mutex_) = false;
  // By version, the last event that has a batch made with it.
  absl::flat_hash_map<int64_t, int64_t> last_uses_ ABSL_GUARDED_BY(mutex_);
  // By part and version.
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const TensorDict>>
      published_ ABSL_GUARDED_BY(mutex_);
};

// A copy, which a run that goes on writing leaves as it is. A mapping would end
// where that run cuts its file.
absl::StatusOr<std::unique_ptr<FlightRecorder>> RepeatLog(
    const std::string& path, bool ends_process) {
  RILL_ASSIGN_OR_RETURN(std::string log, ReadFile(path));
  RILL_ASSIGN_OR_RETURN(FlightDecoder decoder, FlightDecoder::Create(log));
  return std::make_unique<Repetition>(std::move(log), std::move(decoder),
                                      ends_process);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::Record(
    const Options& options) {
  FlightEncoder encoder;
  std::string head;
  RILL_RETURN_IF_ERROR(encoder.Begin({.begin = Clock::System().Now(),
                                      .program = options.program,
                                      .arguments = options.arguments},
                                     &head));
  RILL_ASSIGN_OR_RETURN(auto file, LogFile::Create(options.path));
  RILL_RETURN_IF_ERROR(file->Append(head));
  return std::make_unique<Recording>(std::move(file), encoder, options.clock);
}

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::Repeat(
    const std::string& path) {
  return RepeatLog(path, /*ends_process=*/false);
}

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::OfProgram(
    const std::string& path, int argc, char** argv) {
  if (const char* const log = std::getenv(kVariable); log != nullptr) {
    return RepeatLog(log, /*ends_process=*/true);
  }
  if (path.empty()) return nullptr;
  std::string program(4096, '\0');
  const ssize_t bytes =
      readlink("/proc/self/exe", program.data(), program.size());
  program.resize(bytes < 0 ? 0 : bytes);
  return Record({.path = path,
                 .program = program,
                 .arguments = std::vector<std::string>(argv + 1, argv + argc)});
}

}  // namespace rill
