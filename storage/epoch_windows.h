// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_EPOCH_WINDOWS_H_
#define RILL_STORAGE_EPOCH_WINDOWS_H_

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

// Cuts the slots of a write into windows: puts those of slots [begin, end) into
// `ranges`, sorted and apart, and returns end: at most `max_rows` (>= 1) slots
// and `max_ranges` ranges. `begin` is a slot of the list.
size_t CutWindow(absl::Span<const Slot> slots, size_t begin, int64_t max_rows,
                 size_t max_ranges, std::vector<SlotRange>* ranges);

// Keeps readers from rows that are being overwritten, without a lock, an atomic
// or a version a row; rows are plain bytes.
//
// A reader copies inside an epoch: a padded counter of its own is odd while it
// is inside. A writer publishes the window of slots that it is about to
// overwrite, waits once for everybody who is inside (a grace period), writes
// plainly and closes the window. A reader that finds the window open when it
// has entered, and a slot of its own in it, leaves and waits for the closing;
// so it waits for a window, never for a batch. Why no reader meets half a row:
// docs/design.md, Storage.
//
// A reader that has met kMaxTries windows makes the writer hold its next one
// back until it has been inside: nobody starves, however small the ring.
//
// Thread-safety: Enter from any thread; Open and WaitForReaders by one thread
//   at a time, whose windows are closed. Who is inside must not write.
// Cost: a reader one locked instruction on a cache line that it shares with
//   nobody else on its CPU; a window the same and a load for each counter that
//   was ever used. While a window is open, a reader looks its slots up in it.
template <typename Sync>
class BasicEpochWindows {
 public:
  static constexpr size_t kMaxRanges = 256;
  static constexpr int kMaxTries = 4;

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
        : windows_(std::exchange(other.windows_, nullptr)) {}
    Writing& operator=(Writing&&) = delete;
    ~Writing() {
      if (windows_ != nullptr) windows_->Close();
    }

   private:
    friend class BasicEpochWindows;
    explicit Writing(BasicEpochWindows* windows) : windows_(windows) {}
    BasicEpochWindows* windows_;
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

  Reading TakeCell();
  // The number of the open window if it has a slot of `slots`, else 0.
  uint64_t MetWindow(absl::Span<const Slot> slots) const;
  void Close() {
    window_.store(window_.load(std::memory_order_relaxed) + 1,
                  std::memory_order_release);
  }

  // Odd: this window is open.
  alignas(64) typename Sync::template Atomic<uint64_t> window_{0};
  typename Sync::template Atomic<size_t> num_ranges_{0};
  std::array<Range, kMaxRanges> ranges_;
  // Readers that the writer must let in first.
  alignas(64) typename Sync::template Atomic<int64_t> starving_{0};
  // Cells [0, used) were used at least once.
  alignas(64) typename Sync::template Atomic<size_t> used_{0};
  std::array<Cell, kCells> cells_;
};

using EpochWindows = BasicEpochWindows<EpochSync>;

// --- Implementation
// ----------------------------------------------------------

// In what follows sequential consistency is between a reader's taking of a cell
// and its look at the window on one side, and the writer's publishing of the
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
      for (size_t used = used_.load(); used <= cell;) {
        used_.compare_exchange_strong(used, cell + 1);
      }
      if (counter.compare_exchange_strong(count, count + 1)) {
        return Reading(&counter);
      }
    }
    Sync::Wait(round);
  }
}

template <typename Sync>
uint64_t BasicEpochWindows<Sync>::MetWindow(
    absl::Span<const Slot> slots) const {
  const uint64_t window = window_.load();
  if (window % 2 == 0) return 0;
  const size_t count = num_ranges_.load(std::memory_order_acquire);
  std::array<SlotRange, kMaxRanges> ranges;
  for (size_t i = 0; i < count; ++i) {
    ranges[i].first = ranges_[i].first.load(std::memory_order_acquire);
    ranges[i].count = ranges_[i].count.load(std::memory_order_acquire);
  }
  // Where ranges of a later window came in between, by these acquires the
  // number has changed: this window is closed and its rows are whole, and the
  // later one waits for us.
  if (window_.load(std::memory_order_acquire) != window) return 0;
  return SlotsMeet(slots, absl::MakeConstSpan(ranges.data(), count)) ? window
                                                                     : 0;
}

template <typename Sync>
auto BasicEpochWindows<Sync>::Enter(absl::Span<const Slot> slots) -> Reading {
  for (int tries = 0;; ++tries) {
    uint64_t window;
    {
      Reading reading = TakeCell();
      window = MetWindow(slots);
      if (window == 0) {
        if (tries > kMaxTries) starving_.fetch_sub(1);
        return reading;
      }
    }
    if (tries == kMaxTries) starving_.fetch_add(1);
    for (int round = 0; window_.load(std::memory_order_acquire) == window;
         ++round) {
      Sync::Wait(round);
    }
  }
}

template <typename Sync>
auto BasicEpochWindows<Sync>::Open(absl::Span<const SlotRange> ranges)
    -> Writing {
  // While no window opens, everybody gets in.
  for (int round = 0; starving_.load() != 0; ++round) Sync::Wait(round);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges_[i].first.store(ranges[i].first, std::memory_order_release);
    ranges_[i].count.store(ranges[i].count, std::memory_order_release);
  }
  num_ranges_.store(ranges.size(), std::memory_order_release);
  window_.store(window_.load(std::memory_order_relaxed) + 1);
  WaitForReaders();
  return Writing(this);
}

template <typename Sync>
void BasicEpochWindows<Sync>::WaitForReaders() const {
  const size_t used = used_.load();
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

#endif  // RILL_STORAGE_EPOCH_WINDOWS_H_
