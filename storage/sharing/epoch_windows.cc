// SPDX-License-Identifier: Apache-2.0
// Why no reader meets half a row, though rows are plain bytes without a lock,
// atomic or version each. epoch_windows.h has the code; these are its steps.
//
// Reader (Enter, NumberIfMet, Leave):
//
//   R1  a counter of its own becomes odd (seq_cst).
//   R2  It loads the announcement's number (seq_cst) and, if that is odd,
//       begin, end and ranges (acquire).
//   R3  A slot of its own is in the window: R6, wait for another number, R1.
//   R4  One is in a window to come: store that it is contested (seq_cst). In
//       any case load the number again (seq_cst); another one: as R3.
//   R5  Check that the slots are live, and copy.
//   R6  The counter becomes even (release).
//
// Writer (Open, CloseWindow, OpenWindow, ~Writing):
//
//   W1  Store the ranges, and begin and end of the first window (release).
//   W2  The number becomes odd (seq_cst).
//   W3  Wait until every counter that is odd has changed (seq_cst, acquire).
//   W4  Write the rows of the window plainly.
//   W5  begin becomes end, then another odd number. The next end (release),
//       another odd number (seq_cst). If contested (seq_cst): reset that, W3.
//       Then W4.
//   W6  The number becomes even (release).
//
// Sequentially consistent operations have one order. If R1 comes before W3's
// look at that counter, the writer finds it odd and waits for R6: the copy
// happens before the write. If not, W2, W3, R1 and R2 come in this order, and
// R2 finds this announcement or a later number. In this announcement the row is
// in one of three places.
//
// - Below `begin` it was written before the store that the reader has acquired.
// - In the window, the reader leaves.
// - In a window to come, the reader contests and finds the number unchanged.
//   Its store comes before the writer's next number, and that before the
//   writer's look. The writer finds it contested, then or since, and waits for
//   R6.
//
// Another number at the second look sends the reader back, so its decision is
// about one announcement. One exception: begin and end of the next window may
// be there beside the old number. Both are stored when the rows of the old
// window are whole, so the reader only waits or contests without need.
//
// With several writers a reader looks at every announcement that was ever used;
// the argument holds for each. Every pair is ordered by a release and an
// acquire, which is what a race detector checks.
//
// A reader waits for one window, never for a batch, and never inside. A writer
// waits once a batch for the readers that are inside then, not for later ones:
// a counter that was left and taken again has changed. It waits again only
// where readers want rows of windows to come. A sampler's readers do not, as
// those rows were retired. On a small ring a reader that meets one window after
// the other registers as starving, and writers open none until it is inside. A
// reader that is inside waits for nobody, and a writer waits for starving
// readers with no window open, so no deadlock can form.
//
// The test runs this code under a scheduler that chooses before every access to
// an atomic which thread goes on.
#include "rill/storage/sharing/epoch_windows.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "rill/base/pause_cpu.h"

namespace rill::storage_internal {
namespace {

// So many slots one after the other are worth a window of their own.
constexpr size_t kRowsInOrder = 16;

// The smallest range that holds all of them.
SlotRange Hull(absl::Span<const Slot> slots) {
  Slot low = slots[0];
  Slot high = slots[0];
  for (const Slot slot : slots) {
    low = std::min(low, slot);
    high = std::max(high, slot);
  }
  return {low, high - low + 1};
}

}  // namespace

void EpochSync::Wait(int round) {
  // A window is shorter than a thread takes to sleep and wake, so pauses come
  // first. Where writer and reader share a CPU only a yield helps.
  // Some microseconds, as a window of narrow rows takes, and some tens, as one
  // of wide rows does.
  constexpr int kPauses = 512;
  constexpr int kYields = 64;
  if (round < kPauses) {
    PauseCpu();
  } else if (round < kPauses + kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

size_t EpochSync::Home() {
  // By CPU: threads that run at the same time mostly take different cache
  // lines.
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<size_t>(cpu);
}

bool SlotsMeet(absl::Span<const Slot> slots,
               absl::Span<const SlotRange> ranges) {
  if (ranges.empty()) return false;
  const Slot low = ranges.front().first;
  const uint64_t span =
      static_cast<uint64_t>(ranges.back().first + ranges.back().count - low);
  for (const Slot slot : slots) {
    // As unsigned numbers slots below `low` are large too.
    if (static_cast<uint64_t>(slot) - static_cast<uint64_t>(low) >= span) {
      continue;
    }
    if (ranges.size() == 1) return true;
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), slot,
        [](Slot s, const SlotRange& range) { return s < range.first; });
    const SlotRange& range = *(after - 1);  // slot >= low: there is one.
    if (slot - range.first < range.count) return true;
  }
  return false;
}

void JoinRanges(std::vector<SlotRange>* ranges) {
  if (ranges->empty()) return;
  std::sort(
      ranges->begin(), ranges->end(),
      [](const SlotRange& a, const SlotRange& b) { return a.first < b.first; });
  size_t kept = 0;
  for (size_t i = 1; i < ranges->size(); ++i) {
    SlotRange& last = (*ranges)[kept];
    const SlotRange& next = (*ranges)[i];
    if (next.first > last.first + last.count) {
      (*ranges)[++kept] = next;
    } else {
      last.count = std::max(last.count, next.first + next.count - last.first);
    }
  }
  ranges->resize(kept + 1);
}

size_t CutWindow(absl::Span<const Slot> slots, int64_t max_rows,
                 size_t max_ranges, std::vector<SlotRange>* ranges) {
  ranges->clear();
  slots = slots.first(static_cast<size_t>(
      std::min<int64_t>(max_rows, static_cast<int64_t>(slots.size()))));
  for (size_t count = 0; count < slots.size(); ++count) {
    const Slot slot = slots[count];
    if (!ranges->empty()) {
      SlotRange& last = ranges->back();
      if (slot == last.first + last.count) {
        ++last.count;
        continue;
      }
      if (slot < last.first + last.count) {
        // Behind a long ascending run a step back is the end of a ring: the
        // window ends there. Otherwise one range holds all slots.
        // The wrap of a ring, or no order at all.
        if (count >= kRowsInOrder) return count;
        ranges->assign(1, Hull(slots));
        return slots.size();
      }
      if (ranges->size() == max_ranges) return count;
    }
    ranges->push_back({slot, 1});
  }
  return slots.size();
}

size_t RunCutter::Cut(int64_t max_rows, size_t max_ranges,
                      std::vector<SlotRange>* ranges) {
  // Room for as many as there may be, and locals: a step of many lanes has a
  // run a row.
  max_ranges =
      std::min({max_ranges, runs_.size(), static_cast<size_t>(max_rows)});
  if (ranges->size() < max_ranges) ranges->resize(max_ranges);
  const SlotRange* run = runs_.data();
  const SlotRange* const runs_end = run + runs_.size();
  SlotRange* next = ranges->data();
  const SlotRange* const ranges_end = next + max_ranges;
  int64_t done = done_;
  int64_t rows = 0;
  Slot end = -1;  // Of the last range.
  while (rows < max_rows && run != runs_end) {
    const SlotRange left = {run->first + done, run->count - done};
    const int64_t taken = std::min(left.count, max_rows - rows);
    if (left.first > end) {
      if (next == ranges_end) break;
      *next++ = {left.first, taken};
    } else if (left.first == end) {
      next[-1].count += taken;
    } else {
      break;
    }
    end = left.first + taken;
    rows += taken;
    done += taken;
    if (done == run->count) {
      ++run;
      done = 0;
    }
  }
  ranges->resize(static_cast<size_t>(next - ranges->data()));
  runs_.remove_prefix(static_cast<size_t>(run - runs_.data()));
  done_ = done;
  return static_cast<size_t>(rows);
}

}  // namespace rill::storage_internal
