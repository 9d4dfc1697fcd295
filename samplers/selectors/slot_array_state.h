// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_
#define RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/slot_array.h"

namespace rill::samplers_internal {

// The values other than 0 as a part of a sampler's state, in runs: `runs` has
// the first slot, the length and a step for each, `values` its first value. The
// step is the growth of the value from slot to slot: -1, 0 or 1. Rows of equal
// or of counting values take 32 bytes. T: int64_t, double.
// Thread-safety: as the array's.

template <typename T>
SavedState SaveSlotArray(const SlotArray<T>& array);

// The part `name` of `state`. DATA_LOSS where a slot is not in [0, slots of the
// lanes), or a value not finite; FAILED_PRECONDITION where a slot that never
// held a row has a value. Takes memory for slots that did, whatever the state
// says.
template <typename T>
absl::StatusOr<SlotArray<T>> LoadSlotArray(const UsedSlots& used,
                                           const SavedState& state,
                                           absl::string_view name);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_
