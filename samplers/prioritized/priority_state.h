// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_
#define RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "rill/samplers/prioritized/row_priorities.h"
#include "rill/samplers/state_bytes.h"

namespace rill::samplers_internal {

// The priorities of slots 0 .. num_slots - 1 as a part of a sampler's state.
// Which rows are on is not in it.
//
// Bytes: num_slots, then blocks that cover them all: a length n and, where
// n > 0, n priorities, two float32 in each 8 bytes (the first one low); where
// n < 0, -n times the one priority that follows.
// Thread-safety: thread-compatible.
void SavePriorities(const RowPriorities& rows, int64_t num_slots,
                    StateWriter* writer);
// DATA_LOSS or FAILED_PRECONDITION, `rows` unchanged, where the bytes are no
// such state or one of another number of slots.
absl::Status LoadPriorities(StateReader* reader, int64_t num_slots,
                            RowPriorities* rows);

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_PRIORITIZED_PRIORITY_STATE_H_
