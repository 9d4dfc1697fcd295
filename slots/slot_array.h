// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_SLOT_ARRAY_H_
#define RILL_SLOTS_SLOT_ARRAY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill {

// One value a slot, T() at first, with memory only where slots were written: a
// storage's capacity may be far above what it will ever hold.
//
// Thread-safety: thread-compatible.
// Cost: O(1) each; memory in pages of 4096 values, and 1 byte for 512 slots.
template <typename T>
class SlotArray {
 public:
  // Forgets all values.
  void Reset(int64_t num_slots) {
    num_slots_ = num_slots;
    pages_.clear();
    pages_.resize((num_slots + kPageSlots - 1) / kPageSlots);
  }

  int64_t num_slots() const { return num_slots_; }

  // `slot` in [0, num_slots()).
  T Get(Slot slot) const {
    const std::unique_ptr<T[]>& page = pages_[slot / kPageSlots];
    return page == nullptr ? T() : page[slot % kPageSlots];
  }

  // Has a value that is read soon fetched.
  void Prefetch(Slot slot) const {
    const std::unique_ptr<T[]>& page = pages_[slot / kPageSlots];
    if (page != nullptr) __builtin_prefetch(&page[slot % kPageSlots]);
  }

  // To write the slot's value; gives it memory. The reference holds until
  // Reset.
  T& At(Slot slot) {
    std::unique_ptr<T[]>& page = pages_[slot / kPageSlots];
    if (page == nullptr) page = std::make_unique<T[]>(kPageSlots);
    return page[slot % kPageSlots];
  }

  // The values of `slots`, or of the first ones of them (count >= 1): to write
  // many without a look-up each. Given memory as by At.
  absl::Span<T> Piece(SlotRange slots) {
    const int64_t room = kPageSlots - slots.first % kPageSlots;
    return absl::MakeSpan(&At(slots.first), std::min(slots.count, room));
  }

  // The first slot >= `slot` that has memory, num_slots() where none has: those
  // before it are T().
  Slot NextWithMemory(Slot slot) const {
    while (slot < num_slots_ && pages_[slot / kPageSlots] == nullptr) {
      slot = (slot / kPageSlots + 1) * kPageSlots;
    }
    return std::min(slot, num_slots_);
  }

 private:
  static constexpr int64_t kPageSlots = 4096;

  std::vector<std::unique_ptr<T[]>> pages_;
  int64_t num_slots_ = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_SLOT_ARRAY_H_
