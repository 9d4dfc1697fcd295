// SPDX-License-Identifier: Apache-2.0
#include "rill/slots/generations.h"

namespace rill {
namespace {

// A slot that holds no row keeps the generation g of its next one as ~g, which
// is below 0, and -1 where it was never written.
int64_t Retired(int64_t generation) {
  return generation < 0 ? generation : ~(generation + 1);
}
int64_t Written(int64_t generation) {
  return generation < 0 ? ~generation : generation + 1;
}

template <typename Next>
void Advance(absl::Span<const SlotRange> ranges, Next next,
             std::vector<int64_t>& generations) {
  for (const SlotRange& range : ranges) {
    for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
      generations[slot] = next(generations[slot]);
    }
  }
}

}  // namespace

void Generations::OnAttach(const Lanes& lanes,
                           absl::Span<const Cursor> /*cursors*/) {
  if (static_cast<int64_t>(generations_.size()) == lanes.num_slots()) {
    OnClear();  // The same slots, and maybe other rows: the count goes on.
  } else {
    generations_.assign(lanes.num_slots(), -1);
  }
}

void Generations::OnRetire(const WriteEvent& event) {
  Advance(event.retired, Retired, generations_);
}

void Generations::OnWrite(const WriteEvent& event) {
  Advance(event.written, Written, generations_);
}

void Generations::OnClear() {
  for (int64_t& generation : generations_) generation = Retired(generation);
}

void Generations::Restore(absl::Span<const int64_t> values) {
  generations_.assign(values.begin(), values.end());
}

}  // namespace rill
