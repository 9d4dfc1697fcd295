// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ROWS_TRAJECTORY_CUT_H_
#define RILL_REPLAY_ROWS_TRAJECTORY_CUT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/storage/row_reader.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// How the trajectories that are open in some lanes of a storage are cut
// (Sink::Cut). The newest row of each lane gets `next/truncated` and
// `next/done`; a flag that rows do not have is left out. Observers learn of the
// end from the write. The marks are leaves: every storage keeps and saves them,
// and estimators read them as any truncation.
struct TrajectoryCut {
  // Rows to patch; none where nothing is open.
  std::vector<Slot> slots;
  TensorDict rows;  // [n], the flags.

  // OUT_OF_RANGE where the storage does not have the lanes. FAILED_PRECONDITION
  // where rows cannot tell a cut, and `needs_order`: they have no trajectory id
  // and no `next/truncated`, or the storage reports other ends than the cut
  // sets. Thread-safety: thread-safe, as long as nobody appends to the lanes.
  // Cost: O(lanes), and a read of the flags of their newest rows.
  static absl::StatusOr<TrajectoryCut> Plan(const RowReader& storage,
                                            LaneRange lanes, bool needs_order);
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_ROWS_TRAJECTORY_CUT_H_
