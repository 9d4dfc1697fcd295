// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/slot_heap.h"

#include <algorithm>

namespace rill::samplers_internal {

void SlotHeap::Reset(int64_t num_slots) {
  entries_.clear();
  numbers_.Reset(num_slots);
}

void SlotHeap::Clear() {
  for (const Entry& entry : entries_) numbers_.At(entry.slot) = 0;
  entries_.clear();
}

void SlotHeap::Put(Slot slot, double key) {
  int64_t number = numbers_.Get(slot);
  if (number == 0) {
    entries_.emplace_back();
    number = size();
  }
  Sift(number - 1, {.key = key, .slot = slot});
}

void SlotHeap::Remove(Slot slot) {
  const int64_t number = numbers_.Get(slot);
  if (number == 0) return;
  const Entry last = entries_.back();
  entries_.pop_back();
  numbers_.At(slot) = 0;
  if (last.slot != slot) Sift(number - 1, last);
}

void SlotHeap::Set(int64_t n, const Entry& entry) {
  entries_[n] = entry;
  numbers_.At(entry.slot) = n + 1;
}

// Puts `entry` where it belongs, from place n, which is free.
// Only one of the two loops moves anything: an entry that goes up comes before
// all that it passes, and so before the children of its new place.
void SlotHeap::Sift(int64_t n, const Entry& entry) {
  while (n > 0 && entry.IsBefore(entries_[(n - 1) / 2])) {
    Set(n, entries_[(n - 1) / 2]);
    n = (n - 1) / 2;
  }
  for (int64_t child = 2 * n + 1; child < size(); child = 2 * n + 1) {
    if (child + 1 < size() && entries_[child + 1].IsBefore(entries_[child])) {
      ++child;
    }
    if (!entries_[child].IsBefore(entry)) break;
    Set(n, entries_[child]);
    n = child;
  }
  Set(n, entry);
}

void SlotHeap::First(int64_t count, std::vector<Slot>* slots) {
  // The next in order is always the root or a child of one that was taken. So a
  // second heap, of those candidates, finds the first `count` without a change
  // of the members.
  // Each one that is taken adds two candidates at most, so there are never more
  // than count + 1 of them, whatever the size.
  const auto is_after = [this](int64_t a, int64_t b) {
    return entries_[b].IsBefore(entries_[a]);
  };
  frontier_.clear();
  if (size() > 0) frontier_.push_back(0);
  for (int64_t i = 0; i < count && !frontier_.empty(); ++i) {
    std::pop_heap(frontier_.begin(), frontier_.end(), is_after);
    const int64_t n = frontier_.back();
    frontier_.pop_back();
    slots->push_back(entries_[n].slot);
    for (int64_t child = 2 * n + 1; child <= 2 * n + 2 && child < size();
         ++child) {
      frontier_.push_back(child);
      std::push_heap(frontier_.begin(), frontier_.end(), is_after);
    }
  }
}

}  // namespace rill::samplers_internal
