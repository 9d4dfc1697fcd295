// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

#include <algorithm>

// One number a slot holds both the count of writes and whether a row is there,
// so that Get is one load and a draw is checked by one comparison. Retiring
// changes the sign alone, and only once: a slot that is named twice, or by
// OnRetire and OnClear, is counted once.

namespace rill {
namespace {

// A slot with the row of generation g has g + 1. A slot without a row has -g,
// where g is its next row's generation: 0 where it was never written.
constexpr auto kRetired = [](int64_t next) { return next > 0 ? -next : next; };
constexpr auto kWritten = [](int64_t next) {
  return next > 0 ? next : 1 - next;
};

}  // namespace

void Generations::OnAttach(const Lanes& lanes,
                           absl::Span<const Cursor> /*cursors*/) {
  const SlotPlaces before = places_;
  places_ = SlotPlaces(lanes);
  const bool have_moved =
      lanes != before.lanes() && (before.go_by_step() || places_.go_by_step());
  if (num_slots() == lanes.num_slots() && !have_moved) {
    OnClear();  // The same slots, and maybe other rows: the count goes on.
    return;
  }
  next_.Reset(lanes.num_slots());
  end_ = 0;
}

template <typename Next>
void Generations::Advance(absl::Span<const SlotRange> ranges,
                          absl::Span<const LaneBlock> blocks, Next next) {
  places_.ForEachRun(ranges, blocks, [&](const SlotPlaces::Run& run) {
    next_.Change({.first = run.place, .count = run.count}, next);
    if (!places_.go_by_step()) return;
    end_ = std::max(end_, places_.lanes().PositionOf(run.slot) + 1);
  });
}

void Generations::OnRetire(const WriteEvent& event) {
  if (event.is_patch) return;
  Advance(event.retired, event.retired_blocks, kRetired);
}

void Generations::OnWrite(const WriteEvent& event) {
  if (event.is_patch) return;
  Advance(event.written, event.written_blocks, kWritten);
}

void Generations::OnClear() {
  for (int64_t place = next_.NextValue(0); place < num_slots();
       place = next_.NextValue(place)) {
    const SlotRange page = {.first = place, .count = next_.RoomFrom(place)};
    next_.Change(page, kRetired);
    place += page.count;
  }
}

void Generations::Restore(SlotRange slots, int64_t generation) {
  if (!places_.go_by_step()) {
    next_.Fill(slots, generation + 1);
    return;
  }
  for (Slot slot = slots.first; slot < slots.first + slots.count; ++slot) {
    next_.Fill({.first = places_.Of(slot), .count = 1}, generation + 1);
    end_ = std::max(end_, places_.lanes().PositionOf(slot) + 1);
  }
}

Slot Generations::NextWritten(Slot slot) const {
  if (!places_.go_by_step()) return next_.NextValue(slot);
  const Lanes& lanes = places_.lanes();
  while (slot < num_slots()) {
    if (lanes.PositionOf(slot) >= end_) {
      slot = lanes.SlotOf(lanes.LaneOf(slot) + 1, 0);
      continue;
    }
    const int64_t place = places_.Of(slot);
    if (next_.NextValue(place) == place) return slot;
    ++slot;
  }
  return num_slots();
}

}  // namespace rill
