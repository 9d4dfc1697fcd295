// SPDX-License-Identifier: Apache-2.0
// The rules are those of Reverb's rate limiters: counts, and one condition for
// each side. A permit counts against its own side from the moment it is given,
// so two callers never take the same room. A change needs no signal, since
// absl::Mutex evaluates the conditions of waiters when a lock ends.
#include "rill/replay/rate_limiter.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/slots/slot.h"

namespace rill {
namespace {

constexpr absl::string_view kType = "RateLimiter";
constexpr int64_t kStateVersion = 1;

absl::Status Bad(absl::string_view what, const absl::AlphaNum& got,
                 const absl::AlphaNum& want) {
  return InvalidArgument("RateLimiter::", what, ": got ", got, ", want ", want);
}

bool IsWhole(double value) { return std::floor(value) == value; }

absl::Status CheckOptions(absl::string_view caller,
                          const RateLimiter::Options& options) {
  const auto refuse = [&](absl::string_view option, const absl::AlphaNum& got,
                          const absl::AlphaNum& want) {
    return Bad(absl::StrCat(caller, ": Options::", option), got, want);
  };
  const double ratio = options.samples_per_insert;
  if (!(ratio > 0) || std::isinf(ratio)) {
    return refuse("samples_per_insert", ratio, "> 0 and finite");
  }
  if (options.min_size_to_sample < 1) {
    return refuse("min_size_to_sample", options.min_size_to_sample, ">= 1");
  }
  if (std::isnan(options.min_diff) || options.min_diff == HUGE_VAL) {
    return refuse("min_diff", options.min_diff, "a number or -inf");
  }
  if (std::isnan(options.max_diff) || options.max_diff == -HUGE_VAL) {
    return refuse("max_diff", options.max_diff, "a number or inf");
  }
  const bool is_whole =
      IsWhole(ratio) && IsWhole(options.min_diff) && IsWhole(options.max_diff);
  // With whole numbers diff takes whole values, and the larger step of the two
  // sides fits. Else diff may come to lie just beside both limits.
  const double least = is_whole ? std::max(1.0, ratio) : 1 + ratio;
  const double width = options.max_diff - options.min_diff;
  if (width >= least) return absl::OkStatus();
  return refuse(
      "max_diff - min_diff",
      absl::StrCat(options.max_diff, " - ", options.min_diff, " = ", width),
      absl::StrCat(">= ", least,
                   ", or inserts and samples may come to wait for "
                   "ever"));
}

}  // namespace

RateLimiter::Options RateLimiter::MinSize(int64_t min_size) {
  return {.min_size_to_sample = min_size};
}

absl::StatusOr<RateLimiter::Options> RateLimiter::SampleToInsertRatio(
    double samples_per_insert, int64_t min_size, double error_buffer) {
  const double least = std::max(1.0, samples_per_insert);
  if (!(error_buffer >= least)) {
    return Bad("SampleToInsertRatio: error_buffer", error_buffer,
               absl::StrCat(">= max(1, samples_per_insert) = ", least,
                            "; less could block samples or inserts for good"));
  }
  // diff at the moment when sampling may begin; the error is to both sides of
  // it.
  const double start = samples_per_insert * static_cast<double>(min_size);
  const Options options = {.samples_per_insert = samples_per_insert,
                           .min_size_to_sample = min_size,
                           .min_diff = start - error_buffer,
                           .max_diff = start + error_buffer};
  RILL_RETURN_IF_ERROR(CheckOptions("SampleToInsertRatio", options));
  return options;
}

RateLimiter::Options RateLimiter::Queue(int64_t size) {
  return {.min_diff = 0, .max_diff = static_cast<double>(size)};
}

absl::StatusOr<std::unique_ptr<RateLimiter>> RateLimiter::Create(
    const Options& options, const Clock& clock) {
  RILL_RETURN_IF_ERROR(CheckOptions("Create", options));
  return std::unique_ptr<RateLimiter>(new RateLimiter(options, clock));
}

// --- Permits -----------------------------------------------------------------

RateLimiter::Permit& RateLimiter::Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  End(/*done=*/0);
  limiter_ = std::exchange(other.limiter_, nullptr);
  n_ = other.n_;
  is_insert_ = other.is_insert_;
  return *this;
}

void RateLimiter::Permit::End(int64_t done) {
  RateLimiter* const limiter = std::exchange(limiter_, nullptr);
  if (limiter == nullptr) return;
  absl::MutexLock lock(&limiter->mutex_);
  Count& count = is_insert_ ? limiter->inserts_ : limiter->samples_;
  count.side.in_flight -= n_;
  // Given back and counted in one step, so nobody sees the room twice.
  count.done += std::clamp<int64_t>(done, 0, n_);
}

// --- Waiting -----------------------------------------------------------------

int64_t RateLimiter::MostOf(const Count& count) const {
  return kMaxWritten - count.done - count.side.in_flight;
}

bool RateLimiter::Can(bool is_insert, int64_t n) const {
  const double ratio = options_.samples_per_insert;
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  if (is_insert) {
    // Inserts in flight count here, but not for samples: their rows are not
    // stored yet.
    const int64_t inserts = inserts_.done + inserts_.side.in_flight + n;
    return inserts - deletes_ <= options_.min_size_to_sample ||
           real(inserts) * ratio - real(samples_.done) <= options_.max_diff;
  }
  const int64_t samples = samples_.done + samples_.side.in_flight + n;
  return inserts_.done - deletes_ >= options_.min_size_to_sample &&
         real(inserts_.done) * ratio - real(samples) >= options_.min_diff;
}

bool RateLimiter::CanNever(bool is_insert, int64_t n) const {
  const double ratio = options_.samples_per_insert;
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  if (is_insert) {
    if (inserts_.done - deletes_ + n <= options_.min_size_to_sample) {
      return false;
    }
    const double now = real(inserts_.done) * ratio -
                       real(samples_.done + samples_.side.in_flight);
    // Samples bring diff down to min_diff at most, or leave it where it is.
    return std::min(options_.min_diff, now) + real(n) * ratio >
           options_.max_diff;
  }
  // Below the least size inserts always go.
  const double inserts =
      std::max(real(inserts_.done + inserts_.side.in_flight),
               real(deletes_) + real(options_.min_size_to_sample));
  // Inserts bring diff up to max_diff, or to what the least size permits.
  const double highest =
      std::max(options_.max_diff, inserts * ratio - real(samples_.done));
  return highest - real(n) < options_.min_diff;
}

absl::StatusOr<RateLimiter::Permit> RateLimiter::Await(bool is_insert,
                                                       int64_t n,
                                                       absl::Time deadline) {
  const absl::string_view caller =
      is_insert ? "RateLimiter::AwaitInsert" : "RateLimiter::AwaitSample";
  absl::MutexLock lock(&mutex_);
  Count& count = is_insert ? inserts_ : samples_;
  // Others may be counted while this one waits.
  const auto is_in_range = [&] {
    mutex_.AssertHeld();
    return n >= 1 && n <= MostOf(count);
  };
  const auto is_decided = [&] {
    mutex_.AssertHeld();
    return is_closed_ || !is_in_range() || Can(is_insert, n) ||
           CanNever(is_insert, n);
  };
  // The clock is read only where a call may have to wait.
  if (!is_decided() && deadline > clock_.Now()) {
    ++count.side.waits;
    ++count.side.waiting;
    const absl::Time start = clock_.Now();
    mutex_.AwaitWithDeadline(absl::Condition(&is_decided), deadline);
    --count.side.waiting;
    count.side.time_waited +=
        std::max(clock_.Now() - start, absl::ZeroDuration());
  }
  if (!is_in_range()) {
    return InvalidArgument(caller, ": n: got ", n, ", want [1, ", MostOf(count),
                           "]");
  }
  if (is_closed_) {
    return absl::CancelledError(absl::StrCat(
        caller, ": got a limiter that was closed; ", StateString()));
  }
  if (Can(is_insert, n)) {
    count.side.in_flight += n;
    return Permit(this, n, is_insert);
  }
  const absl::string_view what = is_insert ? " inserts" : " samples";
  if (CanNever(is_insert, n)) {
    return InvalidArgument(
        caller, ": n: got ", n, what,
        ", want fewer, as so many cannot go however long they wait; ask for "
        "smaller batches or set a wider range of diff; ",
        StateString());
  }
  return absl::DeadlineExceededError(absl::StrCat(
      caller, ": ", n, what, " could not go in time; ", StateString()));
}

absl::StatusOr<RateLimiter::Permit> RateLimiter::AwaitInsert(
    int64_t n, absl::Time deadline) {
  return Await(/*is_insert=*/true, n, deadline);
}

absl::StatusOr<RateLimiter::Permit> RateLimiter::AwaitSample(
    int64_t n, absl::Time deadline) {
  return Await(/*is_insert=*/false, n, deadline);
}

bool RateLimiter::CanInsert(int64_t n) const {
  absl::MutexLock lock(&mutex_);
  return !is_closed_ && n >= 1 && n <= MostOf(inserts_) &&
         Can(/*is_insert=*/true, n);
}

bool RateLimiter::CanSample(int64_t n) const {
  absl::MutexLock lock(&mutex_);
  return !is_closed_ && n >= 1 && n <= MostOf(samples_) &&
         Can(/*is_insert=*/false, n);
}

// --- Changes -----------------------------------------------------------------

absl::Status RateLimiter::DidInsert(int64_t n) {
  absl::MutexLock lock(&mutex_);
  const int64_t most = MostOf(inserts_);
  if (n < 0 || n > most) {
    return Bad("DidInsert: n", n, absl::StrCat("[0, ", most, "]"));
  }
  inserts_.done += n;
  return absl::OkStatus();
}

absl::Status RateLimiter::DidDelete(int64_t n) {
  absl::MutexLock lock(&mutex_);
  const int64_t size = inserts_.done - deletes_;
  if (n < 0 || n > size) {
    return Bad("DidDelete: n", n, absl::StrCat("[0, ", size, "], the size"));
  }
  deletes_ += n;
  return absl::OkStatus();
}

absl::Status RateLimiter::SetOptions(const Options& options) {
  RILL_RETURN_IF_ERROR(CheckOptions("SetOptions", options));
  absl::MutexLock lock(&mutex_);
  options_ = options;
  return absl::OkStatus();
}

RateLimiter::Options RateLimiter::options() const {
  absl::MutexLock lock(&mutex_);
  return options_;
}

void RateLimiter::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

// --- State -------------------------------------------------------------------

absl::Status RateLimiter::SetCounts(const Counts& counts) {
  absl::MutexLock lock(&mutex_);
  const auto check = [](absl::string_view what, int64_t got, int64_t most) {
    if (got >= 0 && got <= most) return absl::OkStatus();
    return Bad(absl::StrCat("SetCounts: ", what), got,
               absl::StrCat("[0, ", most, "]"));
  };
  RILL_RETURN_IF_ERROR(
      check("inserts", counts.inserts, kMaxWritten - inserts_.side.in_flight));
  RILL_RETURN_IF_ERROR(
      check("samples", counts.samples, kMaxWritten - samples_.side.in_flight));
  RILL_RETURN_IF_ERROR(check("deletes", counts.deletes, counts.inserts));
  inserts_.done = counts.inserts;
  samples_.done = counts.samples;
  deletes_ = counts.deletes;
  return absl::OkStatus();
}

std::string RateLimiter::SaveState() const {
  const Counts counts = GetStats().done;
  SavedState state(kType, kStateVersion);
  state.Set("inserts", counts.inserts);
  state.Set("samples", counts.samples);
  state.Set("deletes", counts.deletes);
  return state.Encode();
}

absl::Status RateLimiter::LoadState(absl::string_view bytes) {
  RILL_ASSIGN_OR_RETURN(const SavedState state, SavedState::Decode(bytes));
  RILL_RETURN_IF_ERROR(state.CheckType(kType, kStateVersion));
  Counts counts;
  RILL_ASSIGN_OR_RETURN(counts.inserts, state.Get<int64_t>("inserts"));
  RILL_ASSIGN_OR_RETURN(counts.samples, state.Get<int64_t>("samples"));
  RILL_ASSIGN_OR_RETURN(counts.deletes, state.Get<int64_t>("deletes"));
  const absl::Status set = SetCounts(counts);
  return set.ok() ? set : state.Damaged(set.message());
}

RateLimiter::Stats RateLimiter::GetStats() const {
  absl::MutexLock lock(&mutex_);
  // Where n may go, so may fewer.
  int64_t may_sample = 0, may_not = is_closed_ ? 1 : MostOf(samples_) + 1;
  while (may_not - may_sample > 1) {
    const int64_t middle = may_sample + (may_not - may_sample) / 2;
    (Can(/*is_insert=*/false, middle) ? may_sample : may_not) = middle;
  }
  return {.done = {inserts_.done, samples_.done, deletes_},
          .inserts = inserts_.side,
          .samples = samples_.side,
          .may_sample = may_sample};
}

std::string RateLimiter::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return StateString();
}

std::string RateLimiter::StateString() const {
  const double diff =
      static_cast<double>(inserts_.done) * options_.samples_per_insert -
      static_cast<double>(samples_.done);
  return absl::StrCat(
      "inserts = ", inserts_.done, " (and ", inserts_.side.in_flight,
      " in flight), samples = ", samples_.done, " (and ",
      samples_.side.in_flight, " in flight), deletes = ", deletes_,
      ", size = ", inserts_.done - deletes_,
      " of min_size_to_sample = ", options_.min_size_to_sample,
      ", diff = ", diff, " of [", options_.min_diff, ", ", options_.max_diff,
      "] at samples_per_insert = ", options_.samples_per_insert,
      is_closed_ ? ", closed" : "");
}

}  // namespace rill
