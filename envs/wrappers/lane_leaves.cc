// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/lane_leaves.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/spec.h"

namespace rill::envs_internal {
namespace {

absl::StatusOr<std::vector<BoundLeaf>> Bind(std::string caller,
                                            const TensorDictSpec& spec,
                                            absl::string_view prefix,
                                            const TensorDict& step) {
  std::vector<BoundRows::Leaf> wanted;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    wanted.push_back({.key = absl::StrCat(prefix, leaf.key),
                      .dtype = leaf.spec.dtype,
                      .shape = leaf.spec.shape});
  }
  const size_t count = wanted.size();
  RILL_ASSIGN_OR_RETURN(
      BoundRows rows, BoundRows::Create(std::move(caller), std::move(wanted)));
  RILL_RETURN_IF_ERROR(rows.Bind(step));
  std::vector<BoundLeaf> leaves;
  for (size_t i = 0; i < count; ++i) leaves.push_back(rows[i]);
  return leaves;
}

}  // namespace

absl::StatusOr<LaneLeaves> LaneLeaves::Of(std::string caller,
                                          const EnvSpec& spec,
                                          const TensorDict& step) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(spec));
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

void CopyLane(const BoundLeaf& from, const BoundLeaf& to, int64_t lane) {
  if (to.width == 0) return;
  std::memcpy(to.data + lane * to.width, from.data + lane * to.width,
              static_cast<size_t>(to.width));
}

void CopyLane(const std::vector<BoundLeaf>& from,
              const std::vector<BoundLeaf>& to, int64_t lane) {
  for (size_t i = 0; i < from.size(); ++i) CopyLane(from[i], to[i], lane);
}

}  // namespace rill::envs_internal
