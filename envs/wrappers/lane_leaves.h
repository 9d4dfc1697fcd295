// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
#define RILL_ENVS_WRAPPERS_LANE_LEAVES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::envs_internal {

// The leaves of a step, resolved, for an Env that owns another. All lists are
// in the order of the spec, so those of two steps of one spec pair up.
// Thread-safety: thread-compatible. Valid while the dictionary holds the
// tensors.
struct LaneLeaves {
  std::vector<BoundLeaf> actions;
  std::vector<BoundLeaf> root;     // Observations and flags.
  std::vector<BoundLeaf> next;     // The same, below next.
  std::vector<BoundLeaf> rewards;  // Below next.
  BoundLeaf done;                  // next/done.

  // INVALID_ARGUMENT, starting with `caller`, where the step is none of
  // MakeStep(spec) in host memory, or a leaf's rows have gaps.
  static absl::StatusOr<LaneLeaves> Of(absl::string_view caller,
                                       const EnvSpec& spec,
                                       const TensorDict& step);
};

// The rows [from_lane, from_lane + lanes) of each leaf, into those of its pair
// from to_lane on.
void CopyLanes(const std::vector<BoundLeaf>& from, int64_t from_lane,
               const std::vector<BoundLeaf>& to, int64_t to_lane,
               int64_t lanes);
inline void CopyLane(const std::vector<BoundLeaf>& from,
                     const std::vector<BoundLeaf>& to, int64_t lane) {
  CopyLanes(from, lane, to, lane, 1);
}

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
