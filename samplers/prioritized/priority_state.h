// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_
#define RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "rill/base/state/saved_state.h"
#include "rill/samplers/prioritized/row_priorities.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/used_slots.h"
#include "rill/slots/slot.h"

namespace rill::samplers_internal {

// The priorities of all slots of used.lanes() as a part of a sampler's state.
// Those that never held a row have 0 and are not looked at. Which rows are on
// is not in it.
//
// `slots` is their number. `priorities` has blocks that cover them all. A block
// begins with a length n. Where n > 0, n priorities follow, two float32 in each
// number (the first one low). Where n < 0, one follows, which counts -n times.
// Thread-safety: thread-compatible.
void SavePriorities(const RowPriorities& rows, const UsedSlots& used,
                    SavedState* state);
// Into rows of the slots of used.lanes(). DATA_LOSS or FAILED_PRECONDITION,
// `rows` unchanged, where the bytes are no such state, one of another number of
// slots, or give a priority to a slot that never held a row. Takes memory and
// time for slots that did, whatever the state says.
absl::Status LoadPriorities(const SavedState& state, const UsedSlots& used,
                            RowPriorities* rows);

// Calls set(slot, priority) for each row of `moved`, with the slot that it has
// now; for none with an error. Cost: O(the state's bytes and those rows).
absl::Status LoadMovedPriorities(const SavedState& state,
                                 const MovedRows& moved,
                                 absl::FunctionRef<void(Slot, float)> set);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_
