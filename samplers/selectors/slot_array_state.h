// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_
#define RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/samplers/state_bytes.h"
#include "rill/slots/slot_array.h"

namespace rill::samplers_internal {

// The values other than 0 as a part of a sampler's state. It has the number of
// runs, and for each run its first slot, its length, its first value and a
// step. The step is the growth of the value from slot to slot: -1, 0 or 1. Rows
// of equal or of counting values take 32 bytes. T: int64_t, double.
// Thread-safety: as the array's.

template <typename T>
void SaveSlotArray(const SlotArray<T>& array, StateWriter* writer);

// DATA_LOSS where a slot is not in [0, slots of the lanes), or a value not
// finite; FAILED_PRECONDITION where a slot that never held a row has a value.
// Takes memory for slots that did, whatever the state says.
template <typename T>
absl::StatusOr<SlotArray<T>> LoadSlotArray(const UsedSlots& used,
                                           StateReader* reader);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_SELECTORS_SLOT_ARRAY_STATE_H_
