// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_LANE_ROWS_H_
#define RILL_ENVS_LANE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// For those who write an Env: the flags of its step, and checks.

// The flags of a state, one a lane or an agent.
struct LaneFlags {
  absl::Span<bool> done;
  absl::Span<bool> terminated;
  absl::Span<bool> truncated;

  void Set(int64_t lane, bool is_terminated, bool is_truncated) const {
    done[lane] = is_terminated || is_truncated;
    terminated[lane] = is_terminated;
    truncated[lane] = is_truncated;
  }
};
// Those of the root, or below `prefix` "next/". With "agents/" or
// "next/agents/" they are a group's, one an agent of each lane, lane by lane.
// NOT_FOUND or INVALID_ARGUMENT where `step` is none of MakeStep.
absl::StatusOr<LaneFlags> FindLaneFlags(const TensorDict& step,
                                        absl::string_view prefix = "");

// INVALID_ARGUMENT, starting with `caller` ("CartPole::Reset"), unless the mask
// has one entry a lane, and none or one for each lane of each of own_episodes.
absl::Status CheckMask(absl::string_view caller, const EnvSpec& spec,
                       const ResetMask& mask);

// FAILED_PRECONDITION, starting with `caller`, names the first lane whose entry
// is 0: no episode is on in it.
absl::Status CheckRunning(absl::string_view caller,
                          absl::Span<const uint8_t> running);

// FAILED_PRECONDITION, naming `env` and `function`, between BeginStep and
// EndStep.
absl::Status CheckIdle(absl::string_view env, absl::string_view function,
                       bool is_stepping);

// Writes the rows below next of a lane whose simulator failed, as env.h has it:
// done and truncated, with the observation of the root and no reward.
absl::Status CutOffLane(const EnvSpec& spec, const TensorDict& step,
                        int64_t lane);

}  // namespace rill

#endif  // RILL_ENVS_LANE_ROWS_H_
