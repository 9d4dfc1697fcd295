// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill {

absl::StatusOr<LaneFlags> FindLaneFlags(const TensorDict& step,
                                        absl::string_view prefix) {
  LaneFlags flags;
  RILL_ASSIGN_OR_RETURN(flags.done,
                        step.Flat<bool>(absl::StrCat(prefix, "done")));
  RILL_ASSIGN_OR_RETURN(flags.terminated,
                        step.Flat<bool>(absl::StrCat(prefix, "terminated")));
  RILL_ASSIGN_OR_RETURN(flags.truncated,
                        step.Flat<bool>(absl::StrCat(prefix, "truncated")));
  return flags;
}

absl::Status CheckMask(absl::string_view caller, const EnvSpec& spec,
                       const ResetMask& mask) {
  const auto lanes = static_cast<size_t>(spec.lanes);
  if (mask.lanes.size() != lanes) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": mask has ", mask.lanes.size(),
                     " entries, want one a lane: ", lanes));
  }
  const size_t groups = lanes * spec.own_episodes.size();
  if (mask.groups.empty() || mask.groups.size() == groups) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": mask of groups has ", mask.groups.size(), " entries, want ",
      groups, ": one a lane for each of ", spec.own_episodes.size(),
      " groups with episodes of their own"));
}

}  // namespace rill
