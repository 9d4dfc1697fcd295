// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/lane_leaves.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"

namespace rill::envs_internal {
namespace {

absl::StatusOr<std::vector<BoundLeaf>> Bind(absl::string_view caller,
                                            const TensorDictSpec& spec,
                                            absl::string_view prefix,
                                            const TensorDict& step) {
  // Leaves `prefix` + key of the spec, in its order.
  std::vector<BoundRows::Leaf> wanted;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    wanted.push_back({.key = absl::StrCat(prefix, leaf.key),
                      .dtype = leaf.spec.dtype,
                      .shape = leaf.spec.shape});
  }
  const size_t count = wanted.size();
  RILL_ASSIGN_OR_RETURN(BoundRows rows, BoundRows::Create(std::string(caller),
                                                          std::move(wanted)));
  RILL_RETURN_IF_ERROR(rows.Bind(step));
  std::vector<BoundLeaf> leaves;
  for (size_t i = 0; i < count; ++i) {
    // BoundRows has copied a leaf with gaps, and the copy dies with it.
    const std::string key = absl::StrCat(prefix, spec.leaves()[i].key);
    if (!step.Find(key)->is_contiguous()) {
      return InvalidArgument(caller, ": \"", key,
                             "\": got rows with gaps, want a contiguous leaf");
    }
    leaves.push_back(rows[i]);
  }
  return leaves;
}

}  // namespace

absl::StatusOr<LaneLeaves> LaneLeaves::Of(absl::string_view caller,
                                          const EnvSpec& spec,
                                          const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec));
  // Flags before observations: `done` is then the first leaf.
  RILL_ASSIGN_OR_RETURN(TensorDictSpec state, FlagSpec(spec));
  for (const TensorDictSpec::Leaf& leaf : spec.observation.leaves()) {
    RILL_RETURN_IF_ERROR(state.Set(leaf.key, leaf.spec));
  }
  LaneLeaves result;
  RILL_ASSIGN_OR_RETURN(result.actions, Bind(caller, spec.action, "", step));
  RILL_ASSIGN_OR_RETURN(result.root, Bind(caller, state, "", step));
  RILL_ASSIGN_OR_RETURN(result.next, Bind(caller, state, "next/", step));
  RILL_ASSIGN_OR_RETURN(result.rewards, Bind(caller, rewards, "next/", step));
  result.done = result.next[0];  // The first of FlagSpec.
  return result;
}

void CopyLanes(const std::vector<BoundLeaf>& from, int64_t from_lane,
               const std::vector<BoundLeaf>& to, int64_t to_lane,
               int64_t lanes) {
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t width = to[i].width;
    if (width == 0) continue;
    std::memcpy(to[i].data + to_lane * width, from[i].data + from_lane * width,
                static_cast<size_t>(lanes * width));
  }
}

}  // namespace rill::envs_internal
