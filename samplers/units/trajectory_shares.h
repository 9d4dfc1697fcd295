// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_UNITS_TRAJECTORY_SHARES_H_
#define RILL_SAMPLERS_UNITS_TRAJECTORY_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "rill/samplers/trajectories/trajectory_index.h"
#include "rill/slots/write_observer.h"

namespace rill::samplers_internal {

// How many rows each trajectory gains or loses in an append: what units need to
// know which of its rows become anchors, and which cease to be.
//
// Thread-safety: thread-compatible. Reusable: keeps its memory.
// Cost: O(log) a piece of a trajectory.
class TrajectoryShares {
 public:
  struct Share {
    TrajectoryIndex::Handle trajectory = 0;
    int64_t rows = 0;
  };

  // In the order in which trajectories come first; valid until the next call.
  // Those that gain rows; call it after the index was notified of the write.
  absl::Span<const Share> Written(const TrajectoryIndex& index,
                                  const WriteEvent& event);
  // Those that lose their first rows; call it before the index is notified.
  absl::Span<const Share> Retired(const TrajectoryIndex& index,
                                  const WriteEvent& event);

 private:
  absl::Span<const Share> Collect();

  std::vector<TrajectoryIndex::Piece> pieces_;
  std::vector<Share> shares_;
  absl::flat_hash_map<TrajectoryIndex::Handle, size_t> share_of_;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_UNITS_TRAJECTORY_SHARES_H_
