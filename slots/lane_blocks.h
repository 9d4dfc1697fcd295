// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SLOTS_LANE_BLOCKS_H_
#define RILL_SLOTS_LANE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill {

// Neighbouring lanes of which a write names the same positions: `count` from
// `position` on, around the end of the ring.
struct LaneBlock {
  int64_t lane = 0;
  int64_t num_lanes = 0;
  int64_t position = 0;
  int64_t count = 0;

  int64_t end() const { return lane + num_lanes; }
  friend bool operator==(const LaneBlock&, const LaneBlock&) = default;
};

// Reads the ranges of a write as blocks, in their order: what is done for a
// lane can then be done for a block. Lanes that are written together mostly
// are one.
//
// Thread-safety: thread-compatible.
// Cost: a comparison a range, and a division a block; O(1) a block where they
//   are known.
class LaneBlocks {
 public:
  // `ranges` must outlive it; each lies in one lane. `known`: their blocks, or
  // none where nobody has read them yet.
  LaneBlocks(const Lanes& lanes, absl::Span<const SlotRange> ranges,
             absl::Span<const LaneBlock> known = {})
      : lanes_(lanes), known_(known) {
    if (known.empty()) rest_ = ranges;
  }

  // False where there is none left.
  bool Next(LaneBlock* block) {
    if (!known_.empty()) {
      *block = known_.front();
      known_.remove_prefix(1);
      return true;
    }
    if (rest_.empty()) return false;
    const SlotRange& first = rest_[0];
    block->lane = lanes_.LaneOf(first.first);
    block->position = first.first - lanes_.SlotOf(block->lane, 0);
    block->count = first.count;
    // A lane's rows around the end of its ring are two ranges.
    const size_t parts =
        rest_.size() > 1 && block->position > 0 &&
                block->position + first.count == lanes_.capacity &&
                rest_[1].first == lanes_.SlotOf(block->lane, 0)
            ? 2
            : 1;
    if (parts == 2) block->count += rest_[1].count;
    const size_t same = CountSame(parts);
    block->num_lanes = static_cast<int64_t>(same / parts);
    rest_.remove_prefix(same);
    return true;
  }

 private:
  // How many ranges from the front on are those of the first lane, `parts`,
  // moved on lane by lane.
  size_t CountSame(size_t parts) const {
    const int64_t capacity = lanes_.capacity;
    const SlotRange* const ranges = rest_.data();
    const auto difference = [&](size_t i) {
      const SlotRange& now = ranges[i];
      const SlotRange& before = ranges[i - parts];
      return (now.first - before.first - capacity) | (now.count - before.count);
    };
    constexpr size_t kAtOnce = 16;
    // A range as one vector: compilers make none of a loop over its numbers.
    using Words [[gnu::vector_size(2 * sizeof(int64_t))]] = int64_t;
    static_assert(sizeof(SlotRange) == sizeof(Words));
    const Words step = {capacity, 0};
    size_t i = parts;
    for (; i + kAtOnce <= rest_.size(); i += kAtOnce) {
      Words any = {};
      for (size_t k = 0; k < kAtOnce; ++k) {
        Words now;
        Words before;
        std::memcpy(&now, ranges + i + k, sizeof(now));
        std::memcpy(&before, ranges + i + k - parts, sizeof(before));
        any |= now - before - step;
      }
      if ((any[0] | any[1]) != 0) break;
    }
    while (i < rest_.size() && difference(i) == 0) ++i;
    return i - i % parts;
  }

  const Lanes lanes_;
  absl::Span<const LaneBlock> known_;
  absl::Span<const SlotRange> rest_;
};

}  // namespace rill

#endif  // RILL_SLOTS_LANE_BLOCKS_H_
