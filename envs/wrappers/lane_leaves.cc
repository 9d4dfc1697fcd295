// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/lane_leaves.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_spec.h"

namespace rill::envs_internal {

absl::StatusOr<LaneLeaves> LaneLeaves::OfRoot(std::string caller,
                                              const Env& env) {
  return Create(std::move(caller), env, /*is_root=*/true);
}

absl::StatusOr<LaneLeaves> LaneLeaves::OfStep(std::string caller,
                                              const Env& env) {
  return Create(std::move(caller), env, /*is_root=*/false);
}

absl::StatusOr<LaneLeaves> LaneLeaves::Create(std::string caller,
                                              const Env& env, bool is_root) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, StepSpec(env));
  LaneLeaves result;
  result.lanes_ = env.lanes();
  // The action comes before all, what next alone has behind all.
  const auto rank = [&](absl::string_view key) {
    if (key == "action") return 0;
    const bool is_twin =
        !absl::StartsWith(key, "next/") || spec.Find(key.substr(5)) != nullptr;
    return is_twin ? 1 : 2;
  };
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    const bool is_next = absl::StartsWith(leaf.key, "next/");
    const bool is_step = is_next || leaf.key == "action";
    if (is_step != is_root) result.keys_.push_back(leaf.key);
  }
  std::sort(result.keys_.begin(), result.keys_.end(),
            [&](const std::string& a, const std::string& b) {
              return std::make_pair(rank(a), a) < std::make_pair(rank(b), b);
            });
  std::vector<BoundRows::Leaf> leaves;
  for (const std::string& key : result.keys_) {
    const LeafSpec& leaf = *spec.Find(key);
    leaves.push_back({.key = key, .dtype = leaf.dtype, .shape = leaf.shape});
  }
  result.caller_ = caller;
  RILL_ASSIGN_OR_RETURN(result.rows_,
                        BoundRows::Create(std::move(caller), std::move(leaves),
                                          {.allow_strides = true}));
  return result;
}

absl::Status LaneLeaves::Bind(const TensorDict& dict) {
  if (const absl::Status status = rows_.Bind(dict); !status.ok()) {
    return absl::InvalidArgumentError(status.message());
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    const BoundLeaf& leaf = rows_[i];
    if (leaf.rows == lanes_ && dict.batch_shape().rank() == 1 && leaf.is_flat &&
        leaf.is_writable) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        caller_, ": leaf \"", keys_[i], "\": got batch shape ",
        dict.batch_shape().ToString(), leaf.is_flat ? "" : ", not contiguous",
        leaf.is_writable ? "" : ", read-only", ", want writable rows of ",
        lanes_, " lanes without gaps"));
  }
  return absl::OkStatus();
}

size_t LaneLeaves::Find(absl::string_view key) const {
  return static_cast<size_t>(std::find(keys_.begin(), keys_.end(), key) -
                             keys_.begin());
}

void CopyLane(const BoundLeaf& from, const BoundLeaf& to, int64_t lane) {
  if (to.width == 0) return;
  std::memcpy(to.data + lane * to.width, from.data + lane * to.width,
              static_cast<size_t>(to.width));
}

}  // namespace rill::envs_internal
