// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

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

// Replaces each value of `ranges` by next(value), a page at a time: one look-up
// serves up to 4096 slots.
template <typename Next>
void Advance(absl::Span<const SlotRange> ranges, Next next,
             SlotArray<int64_t>* values) {
  for (SlotRange rest : ranges) {
    while (rest.count > 0) {
      const absl::Span<int64_t> piece = values->Piece(rest);
      for (int64_t& value : piece) value = next(value);
      const int64_t count = static_cast<int64_t>(piece.size());
      // A page that a lap has gone over has one count again.
      if (count == values->RoomFrom(rest.first)) values->Compact(rest.first);
      rest.first += count;
      rest.count -= count;
    }
  }
}

}  // namespace

void Generations::OnAttach(const Lanes& lanes,
                           absl::Span<const Cursor> /*cursors*/) {
  if (num_slots() == lanes.num_slots()) {
    OnClear();  // The same slots, and maybe other rows: the count goes on.
  } else {
    next_.Reset(lanes.num_slots());
  }
}

void Generations::OnRetire(const WriteEvent& event) {
  if (event.is_patch) return;
  Advance(event.retired, kRetired, &next_);
}

void Generations::OnWrite(const WriteEvent& event) {
  if (event.is_patch) return;
  Advance(event.written, kWritten, &next_);
}

void Generations::OnClear() {
  for (Slot slot = NextWritten(0); slot < num_slots();
       slot = NextWritten(slot)) {
    const SlotRange page = {.first = slot, .count = next_.RoomFrom(slot)};
    Advance(absl::MakeConstSpan(&page, 1), kRetired, &next_);
    slot += page.count;
  }
}

void Generations::Restore(SlotRange slots, int64_t generation) {
  next_.Fill(slots, generation + 1);
}

}  // namespace rill
