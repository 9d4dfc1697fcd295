// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_MASKED_LANES_H_
#define RILL_TRANSFORMS_STEPS_MASKED_LANES_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace rill {
namespace transforms_internal {

// Bit i is set where mask[i] != 0; of at most 64 lanes.
uint64_t MaskBits(absl::Span<const uint8_t> mask);

}  // namespace transforms_internal

// Calls fn(lane) for each lane with mask[lane] != 0, ascending. Which lanes are
// reset nobody can predict, so there is no branch for each lane.
// Thread-safety: thread-safe.
// Cost: a few instructions for a vector of lanes, and for each lane found.
template <typename Fn>
void ForMaskedLanes(absl::Span<const uint8_t> mask, const Fn& fn) {
  for (size_t begin = 0; begin < mask.size(); begin += 64) {
    uint64_t bits = transforms_internal::MaskBits(mask.subspan(begin, 64));
    for (; bits != 0; bits &= bits - 1) {
      fn(begin + static_cast<size_t>(std::countr_zero(bits)));
    }
  }
}

}  // namespace rill

#endif  // RILL_TRANSFORMS_STEPS_MASKED_LANES_H_
