// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_RANGE_DIFFERENCES_H_
#define RILL_SAMPLERS_UNITS_RANGE_DIFFERENCES_H_

#include <vector>

#include "absl/types/span.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

// Appends what of `ranges` is not in `others`; both are sorted and do not
// overlap. O(both).
void Subtract(absl::Span<const SlotRange> ranges,
              absl::Span<const SlotRange> others,
              std::vector<SlotRange>* result);

void SortBySlot(std::vector<SlotRange>* ranges);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_RANGE_DIFFERENCES_H_
