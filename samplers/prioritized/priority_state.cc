// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/prioritized/priority_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::samplers_internal {
namespace {

// Equal priorities that are worth a block of their own.
constexpr int64_t kRun = 16;

int64_t Pack(float low, float high) {
  return static_cast<int64_t>(std::bit_cast<uint32_t>(low) |
                              uint64_t{std::bit_cast<uint32_t>(high)} << 32);
}
float Unpack(int64_t bits, int64_t i) {
  return std::bit_cast<float>(
      static_cast<uint32_t>(static_cast<uint64_t>(bits) >> (32 * (i % 2))));
}

// The end of the run of equal priorities that starts at `slot`.
Slot EndOfRun(const RowPriorities& rows, const UsedSlots& used, Slot slot) {
  const int64_t num_slots = used.lanes().num_slots();
  const bool is_used = used.Next(slot) == slot;
  const float priority = is_used ? rows.Get(slot) : 0;
  for (Slot end = is_used ? slot + 1 : slot;; ++end) {
    // Slots that never held a row have 0 too. They are jumped over, since a
    // capacity may be far above the rows that were written.
    if (priority == 0) end = used.Next(end);
    if (end >= num_slots || rows.Get(end) != priority) return end;
  }
}

// Calls set(slots, priority) for all slots, a range at a time.
template <typename Set>
absl::Status ReadBlocks(const SavedState& state, int64_t num_slots, Set set) {
  RILL_ASSIGN_OR_RETURN(const auto saved_slots, state.Get<int64_t>("slots"));
  if (saved_slots != num_slots) {
    return state.DoesNotFit(absl::StrCat(
        "priorities: got those of ", saved_slots, " slots, want ", num_slots));
  }
  RILL_ASSIGN_OR_RETURN(auto numbers, state.Ints("priorities"));
  // Past the end all is 0, and `is_cut` set.
  bool is_cut = false;
  const auto next = [&]() -> int64_t {
    is_cut = is_cut || numbers.empty();
    if (is_cut) return 0;
    const int64_t number = numbers.front();
    numbers.remove_prefix(1);
    return number;
  };
  Slot slot = 0;
  while (slot < num_slots) {
    const int64_t length = next();
    const int64_t room = num_slots - slot;
    if (length == 0 || length > room || length < -room) {
      return state.Damaged(
          absl::StrCat("block of priorities at slot ", slot, ": got ", length,
                       " of them, want 1 to ", room, ", or -1 to ", -room));
    }
    const Slot end = slot + std::abs(length);
    // Two priorities share 8 bytes; a run has one of them and counts as one
    // turn.
    const int64_t count = length > 0 ? 1 : -length;  // Slots of a priority.
    int64_t bits = 0;
    for (int64_t i = 0; slot < end; slot += count, ++i) {
      if (i % 2 == 0) {
        bits = next();
      }
      if (is_cut) return state.Damaged("priorities: got too few numbers");
      const float priority = Unpack(bits, i);
      if (!std::isfinite(priority) || std::signbit(priority)) {
        return state.Damaged(absl::StrCat("priority of slot ", slot, ": got ",
                                          priority,
                                          ", want a finite one >= 0"));
      }
      set(SlotRange{.first = slot, .count = count}, priority);
    }
  }
  if (numbers.empty()) return absl::OkStatus();
  return state.Damaged(absl::StrCat("priorities: got ", numbers.size(),
                                    " numbers behind the end, want 0"));
}

}  // namespace

void SavePriorities(const RowPriorities& rows, const UsedSlots& used,
                    SavedState* state) {
  const int64_t num_slots = used.lanes().num_slots();
  std::vector<int64_t> blocks;
  Slot first = 0;  // Of those that are not written yet.
  const auto write_single = [&](Slot end) {
    if (end > first) blocks.push_back(end - first);
    for (; first < end; first += 2) {
      blocks.push_back(
          Pack(rows.Get(first), first + 1 < end ? rows.Get(first + 1) : 0.0f));
    }
    first = end;
  };
  for (Slot slot = 0; slot < num_slots;) {
    const Slot end = EndOfRun(rows, used, slot);
    if (end - slot >= kRun) {
      write_single(slot);
      blocks.insert(blocks.end(), {slot - end, Pack(rows.Get(slot), 0.0f)});
      first = end;
    }
    slot = end;
  }
  write_single(num_slots);
  state->Set("slots", num_slots);
  state->Set("priorities", std::move(blocks));
}

absl::Status LoadPriorities(const SavedState& state, const UsedSlots& used,
                            RowPriorities* rows) {
  const int64_t num_slots = used.lanes().num_slots();
  // Reads everything twice: the first pass finds damage before a row changes.
  Slot unused = -1;
  RILL_RETURN_IF_ERROR(
      ReadBlocks(state, num_slots, [&](SlotRange slots, float priority) {
        if (priority > 0 && unused < 0 && !used.Contains(slots)) {
          unused = slots.first;
        }
      }));
  if (unused >= 0) {
    return state.DoesNotFit(absl::StrCat(
        "priority of slot ", unused, ": got one, want it to have held a row; ",
        "load after the storage has got the rows of the save"));
  }
  // Slots that never had a row stay without memory.
  return ReadBlocks(state, num_slots, [&](SlotRange slots, float priority) {
    const Slot end = slots.first + slots.count;
    for (Slot slot = used.Next(slots.first); slot < end;
         slot = used.Next(slot + 1)) {
      // Equal ones are not written: groups of zeros stay without memory.
      if (rows->Get(slot) != priority) rows->Set(slot, priority);
    }
  });
}

absl::Status LoadMovedPriorities(const SavedState& state,
                                 const MovedRows& moved,
                                 absl::FunctionRef<void(Slot, float)> set) {
  const int64_t num_slots = moved.from.num_slots();
  // As above: no row is set where the bytes are damaged.
  RILL_RETURN_IF_ERROR(ReadBlocks(state, num_slots, [](SlotRange, float) {}));
  size_t at = 0;  // The first range that is not behind.
  return ReadBlocks(state, num_slots, [&](SlotRange slots, float priority) {
    const Slot end = slots.first + slots.count;
    for (; at < moved.ranges.size(); ++at) {
      // Blocks and ranges are both ascending, so each is passed once.
      const MovedRows::Range& range = moved.ranges[at];
      const Slot range_end = range.from + range.count;
      for (Slot slot = std::max(slots.first, range.from);
           slot < std::min(end, range_end); ++slot) {
        set(range.to + (slot - range.from), priority);
      }
      if (range_end > end) break;
    }
  });
}

}  // namespace rill::samplers_internal
