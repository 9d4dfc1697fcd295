// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
#define RILL_ENVS_WRAPPERS_LANE_LEAVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/bound_rows.h"
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
  // MakeStep(spec) in host memory.
  static absl::StatusOr<LaneLeaves> Of(std::string caller, const EnvSpec& spec,
                                       const TensorDict& step);
};

// The row of a lane, of two leaves of one layout, or of each pair of them.
void CopyLane(const BoundLeaf& from, const BoundLeaf& to, int64_t lane);
void CopyLane(const std::vector<BoundLeaf>& from,
              const std::vector<BoundLeaf>& to, int64_t lane);

}  // namespace rill::envs_internal

#endif  // RILL_ENVS_WRAPPERS_LANE_LEAVES_H_
