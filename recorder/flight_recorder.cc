// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/flight_recorder.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/log/log.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/recorder/flight_log.h"
#include "rill/recorder/log_file.h"
#include "rill/recorder/value_digest.h"

namespace rill {
namespace {

using recorder_internal::DigestOf;
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
                    absl::Span<const int64_t> numbers,
                    const TensorDict& values) final {
    const uint32_t digest = DigestOf(values);
    absl::MutexLock lock(&mutex_);
    return Take(kind, part, numbers, digest, &values);
  }

  absl::Status Note(Decision::Kind kind, int64_t part,
                    absl::Span<const int64_t> numbers,
                    absl::Span<const absl::string_view> values) final {
    const uint32_t digest = DigestOf(values);
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
      : file_(std::move(file)),
        encoder_(encoder),
        clock_(*clock),
        begin_(clock->Now()) {}

  bool repeats() const override { return false; }
  absl::StatusOr<Decision> Next(int64_t /*part*/) override {
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
  bool is_at_end() const override { return false; }
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
    event_.at = clock_.Now() - begin_;
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
  const Clock& clock_;
  const absl::Time begin_;
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class Repetition final : public Recorder {
 public:
  Repetition(std::shared_ptr<MappedFile> file, FlightDecoder decoder)
      : file_(std::move(file)), decoder_(std::move(decoder)) {
    absl::MutexLock lock(&mutex_);
    FindLastUses();
    has_next_ = decoder_.Next(&next_);
  }

  bool repeats() const override { return true; }

  absl::StatusOr<Decision> Next(int64_t part) override {
    absl::MutexLock lock(&mutex_);
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    if (next_.decision.part == part) return next_.decision;
    return Difference(absl::StrCat("a call of part ", part));
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
    RILL_RETURN_IF_ERROR(
        Take(Decision::Kind::kChoice, part, numbers, 0, nullptr));
    if (numbers.size() != 1) return Differs("a choice");
    return numbers[0];
  }

  bool is_at_end() const override {
    absl::MutexLock lock(&mutex_);
    return !has_next_ && difference_.ok();
  }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  // Arrivals say which weights are to be kept, and for how long.
  void FindLastUses() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FlightDecoder decoder = decoder_;
    FlightEvent event;
    for (int64_t i = 0; decoder.Next(&event); ++i) {
      if (event.decision.kind != Decision::Kind::kArrival) continue;
      const auto arrival = Arrival::FromNumbers(event.decision.numbers);
      if (!arrival.ok()) continue;
      for (const auto& run : arrival->versions) last_uses_[run.version] = i;
    }
  }

  absl::Status CheckGoesOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RILL_RETURN_IF_ERROR(difference_);
    if (has_next_) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(
        "FlightRecorder: the log ends here: ", events_,
        " events were repeated, and all were equal",
        decoder_.torn_bytes() == 0
            ? ""
            : absl::StrCat("; ", decoder_.torn_bytes(),
                           " bytes behind them are no whole event")));
  }

  absl::Status Difference(absl::string_view got)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return DataLoss("FlightRecorder: event ", events_, ": got ", got, ", want ",
                    FlightEventText(next_),
                    ", as the log has it; this is not the same run");
  }
  absl::Status Differs(absl::string_view got)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    difference_ = Difference(got);
    return difference_;
  }

  absl::Status TakeEvent(const TensorDict* values) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RILL_RETURN_IF_ERROR(CheckGoesOn());
    if (event_.decision != next_.decision || event_.text != next_.text) {
      return Differs(FlightEventText(event_));
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

  const std::shared_ptr<MappedFile> file_;  // The decoder's bytes.
  FlightDecoder decoder_ ABSL_GUARDED_BY(mutex_);
  FlightEvent next_ ABSL_GUARDED_BY(mutex_);
  bool has_next_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status difference_ ABSL_GUARDED_BY(mutex_);
  // By version, the last event that has a batch made with it.
  absl::flat_hash_map<int64_t, int64_t> last_uses_ ABSL_GUARDED_BY(mutex_);
  // By part and version.
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const TensorDict>>
      published_ ABSL_GUARDED_BY(mutex_);
};

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
  RILL_ASSIGN_OR_RETURN(auto file,
                        MappedFile::Open(path, MappedFile::Mode::kReadOnly));
  RILL_ASSIGN_OR_RETURN(
      FlightDecoder decoder,
      FlightDecoder::Create({reinterpret_cast<const char*>(file->data()),
                             static_cast<size_t>(file->size_bytes())}));
  return std::make_unique<Repetition>(std::move(file), std::move(decoder));
}

absl::StatusOr<std::unique_ptr<FlightRecorder>> FlightRecorder::OfProgram(
    const std::string& path, int argc, char** argv) {
  if (const char* const log = std::getenv(kVariable); log != nullptr) {
    return Repeat(log);
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
