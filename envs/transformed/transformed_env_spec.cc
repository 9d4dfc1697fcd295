// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed/transformed_env_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"

namespace rill::envs_internal {
namespace {

absl::Status CheckIs(absl::string_view caller, const TensorDictSpec& spec,
                     absl::string_view key, const LeafSpec& want) {
  const LeafSpec* leaf = spec.Find(key);
  if (leaf != nullptr && HasLayout(*leaf, want.dtype, want.shape)) {
    return absl::OkStatus();
  }
  return StepMisfit(caller, key, leaf == nullptr ? "none" : leaf->ToString(),
                    absl::StrCat(DTypeName(want.dtype), want.shape.ToString(),
                                 " after the transforms"));
}

// Both the root and next have the leaf.
absl::Status CheckTwin(absl::string_view caller, const TensorDictSpec& last,
                       const TensorDictSpec::Leaf& leaf) {
  const std::string twin = IsNext(leaf.key) ? std::string(RootOf(leaf.key))
                                            : absl::StrCat("next/", leaf.key);
  const LeafSpec* other = last.Find(twin);
  if (other != nullptr && HasLayout(*other, leaf.spec.dtype, leaf.spec.shape)) {
    return absl::OkStatus();
  }
  return StepMisfit(
      caller, twin, other == nullptr ? "none" : other->ToString(),
      absl::StrCat("that of \"", leaf.key,
                   "\" after the transforms: ", leaf.spec.ToString()));
}

}  // namespace

absl::Status StepMisfit(absl::string_view caller, absl::string_view key,
                        absl::string_view got, absl::string_view want) {
  return InvalidArgument(caller, ": leaf \"", key, "\": got ", got, ", want ",
                         want);
}

absl::StatusOr<EnvSpec> SpecBehindTransforms(
    absl::string_view caller, const EnvSpec& env, const TensorDictSpec& last,
    absl::Span<const LegalActions> legal) {
  EnvSpec spec;
  spec.name = env.name;
  spec.lanes = env.lanes;
  spec.own_episodes = env.own_episodes;
  spec.device = env.device;
  spec.checks_actions = env.checks_actions;
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec rewards, RewardSpec(env));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(env));
  for (const TensorDictSpec::Leaf& flag : flags.leaves()) {
    for (const std::string& key : {flag.key, absl::StrCat("next/", flag.key)}) {
      RILL_RETURN_IF_ERROR(CheckIs(caller, last, key, flag.spec));
    }
  }
  spec.group_flags = env.group_flags;
  for (const TensorDictSpec::Leaf& reward : rewards.leaves()) {
    const std::string key = absl::StrCat("next/", reward.key);
    RILL_RETURN_IF_ERROR(CheckIs(caller, last, key, reward.spec));
    RILL_RETURN_IF_ERROR(spec.reward.Set(reward.key, *last.Find(key)));
  }
  for (const TensorDictSpec::Leaf& action : env.action.leaves()) {
    const LeafSpec* leaf = last.Find(action.key);
    if (leaf == nullptr) {
      return StepMisfit(caller, action.key, "none", "it after the transforms");
    }
    RILL_RETURN_IF_ERROR(spec.action.Set(action.key, *leaf));
  }
  spec.legal_actions.assign(legal.begin(), legal.end());
  for (const TensorDictSpec::Leaf& leaf : last.leaves()) {
    const absl::string_view root = RootOf(leaf.key);
    if (env.action.Find(leaf.key) != nullptr ||
        (IsNext(leaf.key) && rewards.Find(root) != nullptr)) {
      continue;
    }
    RILL_RETURN_IF_ERROR(CheckTwin(caller, last, leaf));
    if (IsNext(leaf.key) || flags.Find(root) != nullptr) continue;
    RILL_RETURN_IF_ERROR(spec.observation.Set(leaf.key, leaf.spec));
  }
  return spec;
}

}  // namespace rill::envs_internal
