// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SHARING_EPOCH_WINDOWS_H_
#define RILL_STORAGE_SHARING_EPOCH_WINDOWS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// The atomics of BasicEpochWindows and how it waits; tests have others, which
// decide which thread goes on.
struct EpochSync {
  template <typename T>
  using Atomic = std::atomic<T>;
  // Pauses, yields, then sleeps: `round` counts up from 0.
  static void Wait(int round);
  // Which cell to try first.
  static size_t Home();
};

// Any of `slots` is in `ranges`, which are sorted and apart.
bool SlotsMeet(absl::Span<const Slot> slots,
               absl::Span<const SlotRange> ranges);

// Sorts ranges, each of at least one slot, and joins those that overlap or
// touch.
void JoinRanges(std::vector<SlotRange>* ranges);

// Cuts a window off the front of a write's slots, which are not empty. Returns
// how many slots it has, and puts ranges that hold them into `ranges`, sorted
// and apart. There are at most `max_rows` (>= 1) slots and `max_ranges` (>= 1)
// ranges. Slots in no order make one range from the lowest to the highest:
// sorting them takes longer than writing their rows.
size_t CutWindow(absl::Span<const Slot> slots, int64_t max_rows,
                 size_t max_ranges, std::vector<SlotRange>* ranges);

// The same for known runs of slots, as those of an append. Each call of Cut
// puts the next window into `ranges` and returns how many slots it has, at most
// `max_rows` (>= 1). Where a run lies before the one that it follows a window
// ends. `runs` must outlive it.
class RunCutter {
 public:
  explicit RunCutter(absl::Span<const SlotRange> runs) : runs_(runs) {}
  size_t Cut(int64_t max_rows, size_t max_ranges,
             std::vector<SlotRange>* ranges);

 private:
  absl::Span<const SlotRange> runs_;
  int64_t done_ = 0;  // Of the first.
};

// Keeps readers from rows that are being overwritten, without a lock, an atomic
// or a version a row; rows are plain bytes.
//
// A reader copies inside an epoch: a padded counter of its own is odd while it
// is inside. A writer announces the slots that it is about to overwrite and
// waits once for all readers that are inside (a grace period). It then
// overwrites them a window at a time, in ascending order, with plain stores. A
// reader that has a slot in the window that is being written leaves and waits
// for its end; so it waits for a window, never for a batch. One that has a slot
// in a window to come says so and goes on; before the next window the writer
// then waits once more for readers inside. So a batch costs one grace period
// where readers have other rows. Why no reader meets half a row:
// epoch_windows.cc.
//
// Each writer has an announcement of its own, kWriters of them at a time; that
// they write different rows is theirs to see to.
//
// A reader that has met kMaxTries windows makes writers hold their next ones
// back until it has been inside: nobody starves, however small the ring.
//
// Thread-safety: thread-safe. A thread that is inside must not write. A thread
//   that writes must neither announce more nor wait for readers.
// Cost: a reader takes one locked instruction on a cache line that it shares
//   with nobody else on its CPU, and a load for each announcement ever used. A
//   writer takes one such instruction a window. An announcement takes two, and
//   a load for each counter that was ever used. While slots are announced, a
//   reader looks its own up in them.
template <typename Sync>
class BasicEpochWindows {
 public:
  static constexpr size_t kMaxRanges = 256;
  static constexpr size_t kWriters = 8;
  static constexpr int kMaxTries = 4;

 private:
  struct Announcement;

 public:
  // Inside an epoch as long as it lives.
  class [[nodiscard]] Reading {
   public:
    Reading(Reading&& other) noexcept
        : counter_(std::exchange(other.counter_, nullptr)) {}
    // This one must have left: a reader inside must not enter.
    Reading& operator=(Reading&& other) noexcept {
      Leave();
      counter_ = std::exchange(other.counter_, nullptr);
      return *this;
    }
    ~Reading() { Leave(); }

    void Leave() {
      if (counter_ == nullptr) return;
      // Reads of rows stay before this; the writer's acquire pairs with it.
      counter_->store(counter_->load(std::memory_order_relaxed) + 1,
                      std::memory_order_release);
      counter_ = nullptr;
    }

   private:
    friend class BasicEpochWindows;
    explicit Reading(typename Sync::template Atomic<uint64_t>* counter)
        : counter_(counter) {}
    typename Sync::template Atomic<uint64_t>* counter_;
  };

  // Slots are announced as long as it lives, and a window of them is open.
  class [[nodiscard]] Writing {
   public:
    Writing(Writing&& other) noexcept
        : windows_(other.windows_),
          announced_(std::exchange(other.announced_, nullptr)) {}
    Writing& operator=(Writing&&) = delete;
    ~Writing() {
      if (announced_ == nullptr) return;
      announced_->Step(1, std::memory_order_release);
      announced_->is_taken.store(0, std::memory_order_release);
    }

    // The rows of the window are whole: closes it, so that nobody waits for
    // this write until Next.
    void Close() { windows_->CloseWindow(announced_); }

    // Closes the window and opens the one of the announced slots from its end
    // to `end`, beyond it. Returns when nobody is reading those.
    void Next(Slot end) {
      Close();
      windows_->OpenWindow(end, announced_);
    }

   private:
    friend class BasicEpochWindows;
    Writing(const BasicEpochWindows* windows, Announcement* announced)
        : windows_(windows), announced_(announced) {}
    const BasicEpochWindows* windows_;
    Announcement* announced_;
  };

  // Returns when nobody is writing rows of `slots`, and nobody will until the
  // result is gone.
  Reading Enter(absl::Span<const Slot> slots);

  // Announces `ranges`, which are sorted and apart, at least one and at most
  // kMaxRanges, and opens the window of those slots that are below `end`.
  // Returns when nobody is reading its rows. Nobody will until Next or the end
  // of the result.
  Writing Open(absl::Span<const SlotRange> ranges, Slot end);
  // All of them in one window.
  Writing Open(absl::Span<const SlotRange> ranges) {
    return Open(ranges, ranges.back().first + ranges.back().count);
  }

  // Returns when all readers that are inside now have left.
  void WaitForReaders() const;

 private:
  static constexpr size_t kCells = 64;
  struct alignas(64) Cell {
    typename Sync::template Atomic<uint64_t> count{0};
  };
  struct Range {
    typename Sync::template Atomic<int64_t> first{0};
    typename Sync::template Atomic<int64_t> count{0};
  };
  struct alignas(64) Announcement {
    // Odd: there are announced slots. Changes with each window.
    typename Sync::template Atomic<uint64_t> number{0};
    // Those below `begin` are written, the window ends before `end`.
    typename Sync::template Atomic<Slot> begin{0};
    typename Sync::template Atomic<Slot> end{0};
    // A reader who may be inside has slots in a window to come.
    typename Sync::template Atomic<int> is_contested{0};
    typename Sync::template Atomic<int> is_taken{0};  // By a writer.
    typename Sync::template Atomic<size_t> num_ranges{0};
    std::array<Range, kMaxRanges> ranges;

    void Step(uint64_t by, std::memory_order order) {
      number.store(number.load(std::memory_order_relaxed) + by, order);
    }
  };
  // An announcement that a reader must wait for, and its number then.
  struct Met {
    const Announcement* announced = nullptr;
    uint64_t number = 0;
  };

  Reading TakeCell();
  Announcement* TakeAnnouncement();
  void CloseWindow(Announcement* announced) const;
  void OpenWindow(Slot end, Announcement* announced) const;
  void AwaitStarving() const {
    for (int round = 0; starving_.load() != 0; ++round) Sync::Wait(round);
  }
  // A slot of `slots` is in the ranges, and in [begin, end).
  static bool HasAny(const Announcement& announced, Slot begin, Slot end,
                     absl::Span<const Slot> slots);
  // The number where a reader of `slots` must wait for another, else 0.
  uint64_t NumberIfMet(absl::Span<const Slot> slots, Announcement* announced);
  Met FindMet(absl::Span<const Slot> slots);
  // Those below `end` were used at least once.
  static void Raise(typename Sync::template Atomic<size_t>* used, size_t end) {
    for (size_t seen = used->load(); seen < end;) {
      used->compare_exchange_strong(seen, end);
    }
  }

  std::array<Announcement, kWriters> announcements_;
  alignas(64) typename Sync::template Atomic<size_t> used_announcements_{0};
  // Readers that writers must let in first.
  alignas(64) typename Sync::template Atomic<int64_t> starving_{0};
  alignas(64) typename Sync::template Atomic<size_t> used_cells_{0};
  std::array<Cell, kCells> cells_;
};

using EpochWindows = BasicEpochWindows<EpochSync>;

// Sequential consistency is needed between two sides below. A reader takes a
// cell and then looks at the numbers. A writer stores a new number and then
// looks at the cells. One of them sees the other. The same holds for a reader's
// contesting and its second look, and a writer's new number and its look
// whether it is contested.

template <typename Sync>
auto BasicEpochWindows<Sync>::TakeCell() -> Reading {
  const size_t home = Sync::Home();
  for (int round = 0;; ++round) {
    for (size_t i = 0; i < kCells; ++i) {
      const size_t cell = (home + i) % kCells;
      auto& counter = cells_[cell].count;
      uint64_t count = counter.load(std::memory_order_relaxed);
      if (count % 2 != 0) continue;
      Raise(&used_cells_, cell + 1);
      if (counter.compare_exchange_strong(count, count + 1)) {
        return Reading(&counter);
      }
    }
    Sync::Wait(round);
  }
}

template <typename Sync>
bool BasicEpochWindows<Sync>::HasAny(const Announcement& announced, Slot begin,
                                     Slot end, absl::Span<const Slot> slots) {
  // Not on the stack, where it would be filled with zeros first.
  static thread_local std::array<SlotRange, kMaxRanges> ranges;
  size_t count = 0;
  const size_t num_ranges =
      announced.num_ranges.load(std::memory_order_acquire);
  for (size_t i = 0; i < num_ranges; ++i) {
    const Slot range =
        announced.ranges[i].first.load(std::memory_order_acquire);
    const Slot first = std::max(range, begin);
    const Slot after = std::min(
        range + announced.ranges[i].count.load(std::memory_order_acquire), end);
    if (first < after) ranges[count++] = {first, after - first};
  }
  return SlotsMeet(slots, absl::MakeConstSpan(ranges.data(), count));
}

template <typename Sync>
uint64_t BasicEpochWindows<Sync>::NumberIfMet(absl::Span<const Slot> slots,
                                              Announcement* announced) {
  const uint64_t number = announced->number.load();
  if (number % 2 == 0) return 0;
  const Slot begin = announced->begin.load(std::memory_order_acquire);
  const Slot end = announced->end.load(std::memory_order_acquire);
  const bool has_any =
      HasAny(*announced, begin, std::numeric_limits<Slot>::max(), slots);
  const bool is_met = has_any && HasAny(*announced, begin, end, slots);
  if (is_met) return number;
  if (has_any) announced->is_contested.store(1);
  // Where another number came in between, what was read may be of two
  // announcements: by these acquires that shows.
  return announced->number.load() == number ? 0 : number;
}

template <typename Sync>
auto BasicEpochWindows<Sync>::FindMet(absl::Span<const Slot> slots) -> Met {
  const size_t used = used_announcements_.load();
  for (size_t i = 0; i < used; ++i) {
    const uint64_t number = NumberIfMet(slots, &announcements_[i]);
    if (number != 0) return {&announcements_[i], number};
  }
  return {};
}

template <typename Sync>
auto BasicEpochWindows<Sync>::Enter(absl::Span<const Slot> slots) -> Reading {
  for (int tries = 0;; ++tries) {
    Met met;
    {
      Reading reading = TakeCell();
      met = FindMet(slots);
      if (met.announced == nullptr) {
        if (tries > kMaxTries) starving_.fetch_sub(1);
        return reading;
      }
    }
    if (tries == kMaxTries) starving_.fetch_add(1);
    for (int round = 0;
         met.announced->number.load(std::memory_order_acquire) == met.number;
         ++round) {
      Sync::Wait(round);
    }
  }
}

template <typename Sync>
auto BasicEpochWindows<Sync>::TakeAnnouncement() -> Announcement* {
  for (int round = 0;; ++round) {
    for (size_t i = 0; i < kWriters; ++i) {
      auto& is_taken = announcements_[i].is_taken;
      int seen = is_taken.load(std::memory_order_relaxed);
      if (seen == 0 && is_taken.compare_exchange_strong(seen, 1)) {
        Raise(&used_announcements_, i + 1);
        return &announcements_[i];
      }
    }
    Sync::Wait(round);
  }
}

template <typename Sync>
auto BasicEpochWindows<Sync>::Open(absl::Span<const SlotRange> ranges, Slot end)
    -> Writing {
  Announcement* const announced = TakeAnnouncement();
  // While no window is open, everybody gets in.
  AwaitStarving();
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto& range = announced->ranges[i];
    range.first.store(ranges[i].first, std::memory_order_release);
    range.count.store(ranges[i].count, std::memory_order_release);
  }
  announced->num_ranges.store(ranges.size(), std::memory_order_release);
  announced->begin.store(ranges.front().first, std::memory_order_release);
  announced->end.store(end, std::memory_order_release);
  announced->is_contested.store(0, std::memory_order_relaxed);
  announced->Step(1, std::memory_order_seq_cst);
  WaitForReaders();
  return Writing(this, announced);
}

template <typename Sync>
void BasicEpochWindows<Sync>::CloseWindow(Announcement* announced) const {
  announced->begin.store(announced->end.load(std::memory_order_relaxed),
                         std::memory_order_release);
  announced->Step(2, std::memory_order_release);
}

template <typename Sync>
void BasicEpochWindows<Sync>::OpenWindow(Slot end,
                                         Announcement* announced) const {
  AwaitStarving();
  announced->end.store(end, std::memory_order_release);
  announced->Step(2, std::memory_order_seq_cst);
  if (announced->is_contested.load() == 0) return;
  // A reader that contests from here on sees the new number, or is waited for.
  announced->is_contested.store(0);
  WaitForReaders();
}

template <typename Sync>
void BasicEpochWindows<Sync>::WaitForReaders() const {
  const size_t used = used_cells_.load();
  for (size_t i = 0; i < used; ++i) {
    const uint64_t count = cells_[i].count.load();
    if (count % 2 == 0) continue;
    for (int round = 0;
         cells_[i].count.load(std::memory_order_acquire) == count; ++round) {
      Sync::Wait(round);
    }
  }
}

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SHARING_EPOCH_WINDOWS_H_
