// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_RATE_LIMITER_H_
#define RILL_REPLAY_RATE_LIMITER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"

namespace rill {

// Holds writers and learners to a ratio, with the meaning of Reverb's rate
// limiters. It counts; rows are somebody else's. With
//   diff = inserts * samples_per_insert - samples, size = inserts - deletes
//
// n inserts may go where size + n <= min_size_to_sample or diff would be
// <= max_diff after them. Samples, n of them, may go where
// size >= min_size_to_sample and diff would be >= min_diff after them.
//
// An Await gives a permit for n at once. Until it is committed or given back,
// it counts against its own kind and for nothing else: inserts in flight are no
// rows yet. Inserts of n and samples of m never block one another for good
// where max_diff - min_diff >= m + n * samples_per_insert.
//
// Thread-safety: thread-safe. Waiters go in no order.
// Cost: O(1), and O(waiters) where something changed.
//
// Example (RateLimiterTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto limiter,
//                         RateLimiter::Create(RateLimiter::Queue(100)));
//   // A writer; where Extend fails the permit goes back by itself:
//   RILL_ASSIGN_OR_RETURN(auto permit, limiter->AwaitInsert(10, deadline));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
//   permit.Commit();
class RateLimiter {
 public:
  struct Options {
    double samples_per_insert = 1;   // Finite, > 0.
    int64_t min_size_to_sample = 1;  // >= 1.
    // The range max_diff - min_diff is at least 1 + samples_per_insert. Where
    // all three are whole numbers, the larger of 1 and samples_per_insert
    // suffices. With less, both sides may come to wait for ever.
    double min_diff = -std::numeric_limits<double>::infinity();
    double max_diff = std::numeric_limits<double>::infinity();
  };

  // Samples go once there are `min_size` rows, inserts always.
  static Options MinSize(int64_t min_size);
  // Every row is sampled `samples_per_insert` times on average, give or take
  // `error_buffer` samples, once there are `min_size` rows. For an error to one
  // side set Options. INVALID_ARGUMENT where error_buffer is below
  // max(1, samples_per_insert), as at Reverb.
  static absl::StatusOr<Options> SampleToInsertRatio(double samples_per_insert,
                                                     int64_t min_size,
                                                     double error_buffer);
  // At most `size` rows that nobody has sampled yet; each is sampled once. The
  // order is the sampler's: FIFO with a queue, LIFO with a stack.
  static Options Queue(int64_t size);
  static Options Stack(int64_t size) { return Queue(size); }

  // The right to insert or sample n; goes back when it goes out of scope
  // uncommitted. Must not outlive its limiter.
  // Thread-safety: thread-compatible.
  class Permit {
   public:
    Permit(Permit&& other) noexcept
        : limiter_(std::exchange(other.limiter_, nullptr)),
          n_(other.n_),
          is_insert_(other.is_insert_) {}
    Permit& operator=(Permit&& other) noexcept;
    ~Permit() { End(/*done=*/0); }

    // They were inserted, or sampled; with `done` only so many of them, in
    // [0, n]. The second call does nothing.
    void Commit() { End(n_); }
    void Commit(int64_t done) { End(done); }

   private:
    friend class RateLimiter;
    Permit(RateLimiter* limiter, int64_t n, bool is_insert)
        : limiter_(limiter), n_(n), is_insert_(is_insert) {}
    void End(int64_t done);

    RateLimiter* limiter_;  // Null: nothing to end.
    int64_t n_;
    bool is_insert_;
  };

  // All >= 0, deletes <= inserts <= kMaxWritten, samples <= kMaxWritten
  // (slots/slot.h).
  struct Counts {
    int64_t inserts = 0;
    int64_t samples = 0;
    int64_t deletes = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  struct Side {
    int64_t in_flight = 0;  // Permitted, neither committed nor given back.
    int64_t waiting = 0;    // Calls that wait now.
    int64_t waits = 0;      // Calls that had to wait, those of now among them.
    absl::Duration time_waited = absl::ZeroDuration();  // Of those that ended.
  };
  struct Stats {
    Counts done;
    Side inserts;
    Side samples;
    // So many samples would go at once, right now.
    int64_t may_sample = 0;
  };

  // INVALID_ARGUMENT names the option. `clock` measures the time waited and
  // outlives the limiter.
  static absl::StatusOr<std::unique_ptr<RateLimiter>> Create(
      const Options& options, const Clock& clock = Clock::System());
  // Nobody may be waiting any more: Close, and join them.
  ~RateLimiter() = default;

  // Waits until n >= 1 may go. DEADLINE_EXCEEDED, with all counts, at
  // `deadline` (a time that has passed: does not wait). CANCELLED once the
  // limiter was closed. INVALID_ARGUMENT where n is more than can still be
  // counted, kMaxWritten in all (slots/slot.h). The same where n is more than
  // could go however much the other side does, unless rows are deleted: smaller
  // batches or a wider range are the way out.
  absl::StatusOr<Permit> AwaitInsert(int64_t n, absl::Time deadline);
  absl::StatusOr<Permit> AwaitSample(int64_t n, absl::Time deadline);

  // True if n would go at once, right now.
  bool CanInsert(int64_t n) const;
  bool CanSample(int64_t n) const;

  // Rows that came without asking, as those a storage was opened with.
  // INVALID_ARGUMENT unless n >= 0 and the count stays within kMaxWritten.
  absl::Status DidInsert(int64_t n);
  // Rows that are gone. INVALID_ARGUMENT unless n is in [0, size].
  absl::Status DidDelete(int64_t n);

  // New numbers from here on; counts stay, and all waiters look again.
  // INVALID_ARGUMENT as Create, nothing has changed then.
  absl::Status SetOptions(const Options& options);
  Options options() const;

  // Nobody waits any more, for good: all Awaits are CANCELLED. Permits that
  // were given still end as they should.
  void Close();

  // Replaces the counts; permits in flight stay. Counts() forgets everything,
  // as a storage that was cleared does. INVALID_ARGUMENT names the count.
  absl::Status SetCounts(const Counts& counts);
  // The counts, as the bytes of a SavedState (base/state/saved_state.h) with
  // the values `inserts`, `samples` and `deletes`. LoadState is SetCounts;
  // DATA_LOSS or FAILED_PRECONDITION where the bytes do not fit.
  std::string SaveState() const;
  absl::Status LoadState(absl::string_view state);

  Stats GetStats() const;
  // Every number, as in errors.
  std::string DebugString() const;

 private:
  struct Count {
    int64_t done = 0;
    Side side;
  };

  RateLimiter(const Options& options, const Clock& clock)
      : clock_(clock), options_(options) {}

  // How many more can be counted.
  int64_t MostOf(const Count& count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Permit> Await(bool is_insert, int64_t n, absl::Time deadline);
  bool Can(bool is_insert, int64_t n) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // However much the other side does, no rows being deleted.
  bool CanNever(bool is_insert, int64_t n) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string StateString() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  Options options_ ABSL_GUARDED_BY(mutex_);
  Count inserts_ ABSL_GUARDED_BY(mutex_);
  Count samples_ ABSL_GUARDED_BY(mutex_);
  int64_t deletes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rill

#endif  // RILL_REPLAY_RATE_LIMITER_H_
