// SPDX-License-Identifier: Apache-2.0
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
  ranges->clear();
  int64_t rows = 0;
  while (rows < max_rows && !runs_.empty()) {
    const SlotRange left = {runs_[0].first + done_, runs_[0].count - done_};
    const int64_t taken = std::min(left.count, max_rows - rows);
    if (ranges->empty() ||
        left.first > ranges->back().first + ranges->back().count) {
      if (ranges->size() == max_ranges) break;
      ranges->push_back({left.first, taken});
    } else if (left.first == ranges->back().first + ranges->back().count) {
      ranges->back().count += taken;
    } else {
      break;
    }
    rows += taken;
    done_ += taken;
    if (done_ == runs_[0].count) {
      runs_.remove_prefix(1);
      done_ = 0;
    }
  }
  return static_cast<size_t>(rows);
}

}  // namespace rill::storage_internal
