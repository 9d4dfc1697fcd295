// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_SLOT_ARRAY_H_
#define RILL_SLOTS_SLOT_ARRAY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill {

// One value for each slot, T() at first, with memory only where neighbours
// differ. A storage's capacity may be far above what it will ever hold. Slots
// of a ring that were written equally often have one count.
//
// Thread-safety: thread-compatible.
// Cost: O(1) each; memory in pages of 4096 values where they are not all the
//   same, and 1 byte for 256 slots. Pages that were given back are used again.
template <typename T>
class SlotArray {
 public:
  // Forgets all values.
  void Reset(int64_t num_slots) {
    num_slots_ = num_slots;
    pages_.clear();
    pages_.resize((num_slots + kPageSlots - 1) / kPageSlots);
    spare_.clear();
  }

  int64_t num_slots() const { return num_slots_; }

  // `slot` in [0, num_slots()).
  T Get(Slot slot) const {
    const Page& page = pages_[slot / kPageSlots];
    return page.values == nullptr ? page.common
                                  : page.values[slot % kPageSlots];
  }

  // take(i, Get(slot_of(i))) for i in [0, n), in no order: one look at a page
  // where all its values are the same, the others are fetched 64 at a time.
  // `take` must not change what slot_of gives.
  template <typename SlotOf, typename Take>
  void GetAnywhere(size_t n, SlotOf slot_of, Take take) const {
    constexpr size_t kAtOnce = 64;
    std::array<size_t, kAtOnce> own;
    for (size_t begin = 0; begin < n; begin += kAtOnce) {
      const size_t end = std::min(begin + kAtOnce, n);
      size_t num_own = 0;
      for (size_t i = begin; i < end; ++i) {
        const Page& page = pages_[PageOf(slot_of(i))];
        if (page.values == nullptr) {
          take(i, page.common);
        } else {
          __builtin_prefetch(&page.values[slot_of(i) % kPageSlots]);
          own[num_own++] = i;
        }
      }
      for (size_t k = 0; k < num_own; ++k) take(own[k], Get(slot_of(own[k])));
    }
  }

  // values[i] = Get(slots[i]); quick where neighbours are of one page.
  void GetMany(absl::Span<const Slot> slots, T* values) const {
    constexpr size_t kAhead = 64;
    for (size_t i = 0; i < slots.size();) {
      const Slot number = slots[i] / kPageSlots;
      const Page& page = pages_[number];
      if (i + kAhead < slots.size()) Prefetch(slots[i + kAhead]);
      for (; i < slots.size() && slots[i] / kPageSlots == number; ++i) {
        values[i] = page.values == nullptr ? page.common
                                           : page.values[slots[i] % kPageSlots];
      }
    }
  }

  // To write the slot's value; gives it memory. The reference holds until Reset
  // or Compact.
  T& At(Slot slot) {
    Page& page = pages_[slot / kPageSlots];
    if (page.values == nullptr) page.values = NewPage(page.common);
    return page.values[slot % kPageSlots];
  }

  // Sets the values of `slots`. Cost: O(pages); pages that are covered whole
  // have no memory afterwards.
  void Fill(SlotRange slots, T value) {
    while (slots.count > 0) {
      const int64_t room = RoomFrom(slots.first);
      const int64_t count = std::min(slots.count, room);
      Page& page = pages_[slots.first / kPageSlots];
      if (slots.first % kPageSlots == 0 && count == room) {
        page.common = value;
        if (page.values != nullptr) spare_.push_back(std::move(page.values));
      } else if (page.values != nullptr || !(page.common == value)) {
        const absl::Span<T> piece = Piece({slots.first, count});
        std::fill(piece.begin(), piece.end(), value);
        if (count == room) Compact(slots.first);
      }
      slots.first += count;
      slots.count -= count;
    }
  }

  // Each value of `slots` becomes next(value). Cost: O(1) a page that is
  // covered whole and has one value.
  template <typename Next>
  void Change(SlotRange slots, Next next) {
    while (slots.count > 0) {
      const int64_t room = RoomFrom(slots.first);
      const int64_t count = std::min(slots.count, room);
      const bool is_whole = slots.first % kPageSlots == 0 && count == room;
      Page& page = pages_[slots.first / kPageSlots];
      if (is_whole && page.values == nullptr) {
        page.common = next(page.common);
      } else {
        const absl::Span<T> piece = Piece({slots.first, count});
        for (T& value : piece) value = next(value);
        // A page that a lap has gone over has one value again.
        if (count == room) Compact(slots.first);
      }
      slots.first += count;
      slots.count -= count;
    }
  }

  // The values of `slots`, or of the first ones of them (count >= 1): to write
  // many without a look-up each. Given memory as by At.
  absl::Span<T> Piece(SlotRange slots) {
    return absl::MakeSpan(&At(slots.first),
                          std::min(slots.count, RoomFrom(slots.first)));
  }
  // How many slots from this one on are of its page.
  int64_t RoomFrom(Slot slot) const {
    return std::min(kPageSlots - slot % kPageSlots, num_slots_ - slot);
  }

  // Gives the memory of a slot's page back where its values are all the same.
  void Compact(Slot slot) {
    Page& page = pages_[slot / kPageSlots];
    if (page.values == nullptr) return;
    const T* const values = page.values.get();
    const int64_t count = RoomFrom(slot - slot % kPageSlots);
    for (int64_t i = 1; i < count; ++i) {
      if (values[i] != values[0]) return;
    }
    page.common = values[0];
    spare_.push_back(std::move(page.values));
  }

  // The first slot >= `slot` that may have another value than T(), num_slots()
  // where none has.
  Slot NextValue(Slot slot) const {
    while (slot < num_slots_ && pages_[slot / kPageSlots].values == nullptr &&
           pages_[slot / kPageSlots].common == T()) {
      slot = (slot / kPageSlots + 1) * kPageSlots;
    }
    return std::min(slot, num_slots_);
  }

 private:
  static constexpr int64_t kPageSlots = 4096;
  static size_t PageOf(Slot slot) {
    return static_cast<uint64_t>(slot) / kPageSlots;
  }
  // Has a value that is read soon fetched. Inlined always, as g++ leaves
  // out calls of what only prefetches.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Prefetch(Slot slot) const {
    const Page& page = pages_[slot / kPageSlots];
    if (page.values != nullptr) {
      __builtin_prefetch(&page.values[slot % kPageSlots]);
    }
  }

  struct Page {
    std::unique_ptr<T[]> values;  // Null: all are `common`.
    T common = T();
  };

  std::unique_ptr<T[]> NewPage(T value) {
    std::unique_ptr<T[]> page;
    if (spare_.empty()) {
      page = std::make_unique_for_overwrite<T[]>(kPageSlots);
    } else {
      page = std::move(spare_.back());
      spare_.pop_back();
    }
    std::fill_n(page.get(), kPageSlots, value);
    return page;
  }

  std::vector<Page> pages_;
  std::vector<std::unique_ptr<T[]>> spare_;
  int64_t num_slots_ = 0;
};

}  // namespace rill

#endif  // RILL_SLOTS_SLOT_ARRAY_H_
