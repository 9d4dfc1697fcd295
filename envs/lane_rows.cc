// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"
#include "rill/tensors/tensor.h"

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
    return InvalidArgument(caller, ": mask has ", mask.lanes.size(),
                           " entries, want one a lane: ", lanes);
  }
  const size_t groups = lanes * spec.own_episodes.size();
  if (mask.groups.empty() || mask.groups.size() == groups) {
    return absl::OkStatus();
  }
  return InvalidArgument(caller, ": mask of groups has ", mask.groups.size(),
                         " entries, want ", groups, ": one a lane for each of ",
                         spec.own_episodes.size(),
                         " groups with episodes of their own");
}

absl::Status CheckRunning(absl::string_view caller,
                          absl::Span<const uint8_t> running) {
  const auto idle = std::find(running.begin(), running.end(), 0);
  if (idle == running.end()) return absl::OkStatus();
  return FailedPrecondition(caller, ": lane ", idle - running.begin(),
                            " is done or was never reset; call Reset first");
}

absl::Status CheckIdle(absl::string_view env, absl::string_view function,
                       bool is_stepping) {
  if (!is_stepping) return absl::OkStatus();
  return FailedPrecondition(env, "::", function,
                            ": a step has begun; call EndStep first");
}

absl::Status CutOffLane(const EnvSpec& spec, const TensorDict& step,
                        int64_t lane) {
  // The lane's row of a leaf below next, as a view that is written.
  const auto next_row = [&](absl::string_view key) -> absl::StatusOr<Tensor> {
    RILL_ASSIGN_OR_RETURN(const Tensor leaf,
                          step.Get(absl::StrCat("next/", key)));
    return leaf.Index(lane);
  };
  for (const TensorDictSpec::Leaf& leaf : spec.observation.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor to, next_row(leaf.key));
    RILL_ASSIGN_OR_RETURN(const Tensor root, step.Get(leaf.key));
    RILL_ASSIGN_OR_RETURN(const Tensor from, root.Index(lane));
    RILL_RETURN_IF_ERROR(to.CopyFrom(from));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec));
  for (const TensorDictSpec::Leaf& leaf : rewards.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor to, next_row(leaf.key));
    RILL_ASSIGN_OR_RETURN(const Tensor none, leaf.spec.Zero({}));
    RILL_RETURN_IF_ERROR(to.CopyFrom(none));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec));
  for (const TensorDictSpec::Leaf& leaf : flags.leaves()) {
    RILL_ASSIGN_OR_RETURN(Tensor to, next_row(leaf.key));
    // `done` and `truncated` are set. `terminated` is not: the value of the
    // state is not known to be 0.
    RILL_ASSIGN_OR_RETURN(const Tensor flag,
                          absl::EndsWith(leaf.key, "terminated")
                              ? leaf.spec.Zero({})
                              : leaf.spec.One({}));
    RILL_RETURN_IF_ERROR(to.CopyFrom(flag));
  }
  return absl::OkStatus();
}

}  // namespace rill
