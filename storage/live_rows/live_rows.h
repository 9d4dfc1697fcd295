// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_LIVE_ROWS_LIVE_ROWS_H_
#define RILL_STORAGE_LIVE_ROWS_LIVE_ROWS_H_

#include "absl/status/statusor.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

enum class LiveRowsShape {
  kLanesTime,  // [lanes, time], where all lanes have equally many rows.
  kFlat,       // [rows], lane after lane.
};

// A copy of all live rows of a storage, the oldest of each lane first:
// TorchRL's `storage[:]`, but in the order of time. Its shape is [lanes, 0] or
// [0] where there are none.
//
// FAILED_PRECONDITION where kLanesTime is asked and two lanes have differently
// many rows: names both and their rows. Errors of Storage::Read.
// Where rows are written meanwhile, those that are overwritten may be the newer
// ones of their slots, or OUT_OF_RANGE; ReplayBuffer::ReadAll keeps its own
// writes away.
//
// Thread-safety: thread-safe. Cost: one Read of all rows and 8 bytes each.
//
// Example (LiveRowsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TensorDict rows, ReadLiveRows(*storage));
absl::StatusOr<TensorDict> ReadLiveRows(
    const RowReader& storage, LiveRowsShape shape = LiveRowsShape::kLanesTime);

}  // namespace rill

#endif  // RILL_STORAGE_LIVE_ROWS_LIVE_ROWS_H_
