// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_SPLIT_TRAJECTORIES_H_
#define RILL_TRANSFORMS_SPLIT_TRAJECTORIES_H_

#include <string>

#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

struct SplitTrajectoriesOptions {
  // int64 [*B], one a step: a trajectory ends where it changes. Steps of id -1
  // are missing and left out. `sequence_id` splits a sample of sequences. Where
  // the batch has no such leaf the ends are those of done_key, and the result
  // has it, numbered from 0.
  std::string trajectory_key = "collector/traj_ids";
  // bool [*B, 1]: the trajectory ends with this step. Where it is missing
  // `terminated` and `truncated` beside it count.
  std::string done_key = "next/done";
  std::string mask_key = "collector/mask";
  // False: the result is [steps], one trajectory behind the other, without
  // padding. A mask is not added.
  bool pad = true;
};

// Steps that lie one behind the other, apart by trajectories: TorchRL's
// split_trajectories. `batch` is [*B, T], time last, as collectors, rollouts
// and slices make it; the last step of a lane ends its trajectory, whatever its
// neighbour's id is.
//
// The result is [N, longest], a row a trajectory, in their order. Behind a last
// step stand zeros (null for values a row). `mask_key` bool [N, longest] is
// true where a step is. A batch that has a leaf of this name keeps its values
// there, so that what only padded a slice stays masked.
//
// NOT_FOUND where the batch has neither leaf. INVALID_ARGUMENT where it has no
// step, also for missing ones, or a leaf of another dtype or shape, or where the
// dimensions' names say that the last one is not time.
// FAILED_PRECONDITION where one lies on a device.
//
// Differs from TorchRL: a batch of one trajectory a lane becomes [lanes, T] as
// well, where TorchRL leaves a batch of more dimensions as it is.
//
// Cost: O(N x longest) bytes, copied twice; without padding once.
// Thread-safety: reads only.
//
// Example (SplitTrajectoriesTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(TensorDict episodes, SplitTrajectories(rollout));
absl::StatusOr<TensorDict> SplitTrajectories(
    const TensorDict& batch, const SplitTrajectoriesOptions& options = {});

}  // namespace rill

#endif  // RILL_TRANSFORMS_SPLIT_TRAJECTORIES_H_
