// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_SLOT_HEAP_H_
#define RILL_SAMPLERS_SELECTORS_SLOT_HEAP_H_

#include <cstdint>
#include <vector>

#include "rill/slots/slot.h"
#include "rill/slots/slot_array.h"

namespace rill::samplers_internal {

// Slots in the order of their keys, equal keys in the order of their slots. The
// order is a function of the members alone, whatever their history.
//
// Thread-safety: thread-compatible.
// Cost: Put and Remove O(log members); 16 bytes a member and 8 a slot that was
//   ever one.
class SlotHeap {
 public:
  // Forgets all members.
  void Reset(int64_t num_slots);
  void Clear();

  // Adds the slot, or gives it another key. `key` is finite.
  void Put(Slot slot, double key);
  // Nothing where it is no member.
  void Remove(Slot slot);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  bool Contains(Slot slot) const { return numbers_.Get(slot) > 0; }

  // Appends the first min(count, size()) slots, in order. O(count log count).
  void First(int64_t count, std::vector<Slot>* slots);

 private:
  struct Entry {
    double key = 0;
    Slot slot = 0;
    bool IsBefore(const Entry& other) const {
      return key != other.key ? key < other.key : slot < other.slot;
    }
  };
  void Set(int64_t n, const Entry& entry);
  void Sift(int64_t n, const Entry& entry);

  std::vector<Entry> entries_;
  SlotArray<int64_t> numbers_;     // Index in entries_, plus 1; 0: no member.
  std::vector<int64_t> frontier_;  // Of First.
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_SLOT_HEAP_H_
