// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SHARING_EPOCH_WINDOWS_H_
#define RILL_STORAGE_SHARING_EPOCH_WINDOWS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::storage_internal {

// The atomics of BasicEpochWindows and how it waits; tests have others, which
// decide who goes on.
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

// Cuts a window off the front of a write's slots, which are not empty: returns
// how many it has and puts ranges that hold them into `ranges`, sorted and
// apart: at most `max_rows` (>= 1) slots and `max_ranges` (>= 1) ranges. Slots
// in no order make one range from the lowest to the highest: sorting them takes
// longer than writing their rows.
size_t CutWindow(absl::Span<const Slot> slots, int64_t max_rows,
                 size_t max_ranges, std::vector<SlotRange>* ranges);

// The same for runs of slots that are known, as those of an append: each call
// of Cut puts the next window into `ranges` and returns how many slots it has,
// at most `max_rows` (>= 1). Where a run lies before the one that it follows a
// window ends. `runs` must outlive it.
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
// is inside. A writer publishes the window of slots that it is about to
// overwrite, waits once for everybody who is inside (a grace period), writes
// plainly and closes the window. A reader that finds a window open when it has
// entered, and a slot of its own in it, leaves and waits for the closing; so it
// waits for a window, never for a batch. Why no reader meets half a row:
// docs/design.md, Storage.
//
// Each writer has a window of its own, kWindows of them at a time; that they
// write different rows is theirs to see to.
//
// A reader that has met kMaxTries windows makes writers hold their next ones
// back until it has been inside: nobody starves, however small the ring.
//
// Thread-safety: thread-safe. Who is inside must not write, and who has a
//   window must neither open another nor wait for readers.
// Cost: a reader one locked instruction on a cache line that it shares with
//   nobody else on its CPU, and a load for each window that was ever open
//   beside others; a writer two such instructions and a load for each counter
//   that was ever used. While a window is open, a reader looks its slots up in
//   it.
template <typename Sync>
class BasicEpochWindows {
 public:
  static constexpr size_t kMaxRanges = 256;
  static constexpr size_t kWindows = 8;
  static constexpr int kMaxTries = 4;

 private:
  struct Window;

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
      // What was read stays before this; the writer's acquire pairs with it.
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

  // A window is open as long as it lives.
  class [[nodiscard]] Writing {
   public:
    Writing(Writing&& other) noexcept
        : window_(std::exchange(other.window_, nullptr)) {}
    Writing& operator=(Writing&&) = delete;
    ~Writing() {
      if (window_ == nullptr) return;
      window_->number.store(window_->number.load(std::memory_order_relaxed) + 1,
                            std::memory_order_release);
      window_->is_taken.store(0, std::memory_order_release);
    }

   private:
    friend class BasicEpochWindows;
    explicit Writing(Window* window) : window_(window) {}
    Window* window_;
  };

  // Returns when nobody is writing rows of `slots`, and nobody will until the
  // result is gone.
  Reading Enter(absl::Span<const Slot> slots);

  // Returns when nobody is reading rows of `ranges`, which are sorted and
  // apart, at least one and at most kMaxRanges. Nobody will until the result is
  // gone.
  Writing Open(absl::Span<const SlotRange> ranges);

  // Returns when all who are inside now have left.
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
  struct alignas(64) Window {
    // Odd: it is open.
    typename Sync::template Atomic<uint64_t> number{0};
    typename Sync::template Atomic<int> is_taken{0};  // By a writer.
    typename Sync::template Atomic<size_t> num_ranges{0};
    std::array<Range, kMaxRanges> ranges;
  };
  // A window that a reader met, and its number then.
  struct Met {
    const Window* window = nullptr;
    uint64_t number = 0;
  };

  Reading TakeCell();
  Window* TakeWindow();
  // The number of the window if it is open and has a slot of `slots`, else 0.
  uint64_t NumberIfMet(const Window& window,
                       absl::Span<const Slot> slots) const;
  Met FindMet(absl::Span<const Slot> slots) const;
  // Those below `end` were used at least once.
  static void Raise(typename Sync::template Atomic<size_t>* used, size_t end) {
    for (size_t seen = used->load(); seen < end;) {
      used->compare_exchange_strong(seen, end);
    }
  }

  std::array<Window, kWindows> windows_;
  alignas(64) typename Sync::template Atomic<size_t> used_windows_{0};
  // Readers that writers must let in first.
  alignas(64) typename Sync::template Atomic<int64_t> starving_{0};
  alignas(64) typename Sync::template Atomic<size_t> used_cells_{0};
  std::array<Cell, kCells> cells_;
};

using EpochWindows = BasicEpochWindows<EpochSync>;

// --- Implementation
// ----------------------------------------------------------

// In what follows sequential consistency is between a reader's taking of a cell
// and its look at the windows on one side, and a writer's publishing of its
// window and its look at the cells on the other: one of them sees the other.

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
uint64_t BasicEpochWindows<Sync>::NumberIfMet(
    const Window& window, absl::Span<const Slot> slots) const {
  const uint64_t number = window.number.load();
  if (number % 2 == 0) return 0;
  const size_t count = window.num_ranges.load(std::memory_order_acquire);
  std::array<SlotRange, kMaxRanges> ranges;
  for (size_t i = 0; i < count; ++i) {
    ranges[i].first = window.ranges[i].first.load(std::memory_order_acquire);
    ranges[i].count = window.ranges[i].count.load(std::memory_order_acquire);
  }
  // Where ranges of a later opening came in between, by these acquires the
  // number has changed: this one is closed and its rows are whole, and the
  // later one waits for us.
  if (window.number.load(std::memory_order_acquire) != number) return 0;
  return SlotsMeet(slots, absl::MakeConstSpan(ranges.data(), count)) ? number
                                                                     : 0;
}

template <typename Sync>
auto BasicEpochWindows<Sync>::FindMet(absl::Span<const Slot> slots) const
    -> Met {
  const size_t used = used_windows_.load();
  for (size_t i = 0; i < used; ++i) {
    const uint64_t number = NumberIfMet(windows_[i], slots);
    if (number != 0) return {&windows_[i], number};
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
      if (met.window == nullptr) {
        if (tries > kMaxTries) starving_.fetch_sub(1);
        return reading;
      }
    }
    if (tries == kMaxTries) starving_.fetch_add(1);
    for (int round = 0;
         met.window->number.load(std::memory_order_acquire) == met.number;
         ++round) {
      Sync::Wait(round);
    }
  }
}

template <typename Sync>
auto BasicEpochWindows<Sync>::TakeWindow() -> Window* {
  for (int round = 0;; ++round) {
    for (size_t i = 0; i < kWindows; ++i) {
      int is_taken = windows_[i].is_taken.load(std::memory_order_relaxed);
      if (is_taken == 0 &&
          windows_[i].is_taken.compare_exchange_strong(is_taken, 1)) {
        Raise(&used_windows_, i + 1);
        return &windows_[i];
      }
    }
    Sync::Wait(round);
  }
}

template <typename Sync>
auto BasicEpochWindows<Sync>::Open(absl::Span<const SlotRange> ranges)
    -> Writing {
  Window* const window = TakeWindow();
  // While no window opens, everybody gets in.
  for (int round = 0; starving_.load() != 0; ++round) Sync::Wait(round);
  for (size_t i = 0; i < ranges.size(); ++i) {
    window->ranges[i].first.store(ranges[i].first, std::memory_order_release);
    window->ranges[i].count.store(ranges[i].count, std::memory_order_release);
  }
  window->num_ranges.store(ranges.size(), std::memory_order_release);
  window->number.store(window->number.load(std::memory_order_relaxed) + 1);
  WaitForReaders();
  return Writing(window);
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
