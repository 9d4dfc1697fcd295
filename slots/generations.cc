// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

namespace rill {
namespace {

// A slot that holds the row of generation g has g + 1; one that holds none has
// -g of its next row's generation g, 0 where it was never written.
int64_t Retired(int64_t next) { return next > 0 ? -next : next; }
int64_t Written(int64_t next) { return next > 0 ? next : 1 - next; }

template <typename Next>
void Advance(absl::Span<const SlotRange> ranges, Next next, int64_t* values) {
  for (const SlotRange& range : ranges) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      values[slot] = next(values[slot]);
    }
  }
}

}  // namespace

void Generations::OnAttach(const Lanes& lanes,
                           absl::Span<const Cursor> /*cursors*/) {
  if (num_slots_ == lanes.num_slots()) {
    OnClear();  // The same slots, and maybe other rows: the count goes on.
  } else {
    Reset(lanes.num_slots());
  }
}

void Generations::OnRetire(const WriteEvent& event) {
  Advance(event.retired, Retired, next_.get());
}

void Generations::OnWrite(const WriteEvent& event) {
  Advance(event.written, Written, next_.get());
}

void Generations::OnClear() {
  for (Slot slot = 0; slot < num_slots_; ++slot) {
    if (next_[slot] > 0) next_[slot] = Retired(next_[slot]);
  }
}

void Generations::Restore(SlotRange slots, int64_t generation) {
  for (Slot slot = slots.first; slot < slots.first + slots.count; ++slot) {
    if (next_[slot] != generation + 1) next_[slot] = generation + 1;
  }
}

void Generations::Reset(int64_t num_slots) {
  num_slots_ = num_slots;
  next_.reset();
  if (num_slots == 0) return;
  next_.reset(static_cast<int64_t*>(
      std::calloc(static_cast<size_t>(num_slots), sizeof(int64_t))));
  if (next_ == nullptr) std::abort();  // As operator new would.
}

}  // namespace rill
