// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/env_spec.h"

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/legal_choices.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kFlags[] = {"done", "terminated", "truncated"};

absl::Status Refuse(const EnvSpec& spec, absl::string_view what,
                    absl::string_view got, absl::string_view want) {
  return InvalidArgument("EnvSpec of \"", spec.name, "\": ", what, ": got ",
                         got, ", want ", want);
}

// Adds the leaves of `from` below `prefix`; none may be there.
absl::Status AddLeaves(const EnvSpec& env, absl::string_view prefix,
                       const TensorDictSpec& from, TensorDictSpec* to) {
  for (const TensorDictSpec::Leaf& leaf : from.leaves()) {
    const std::string key = absl::StrCat(prefix, leaf.key);
    absl::string_view head, rest;
    // "next/x" of an observation would be taken for the state after the step.
    SplitKeyHead(leaf.key, &head, &rest);
    if (head == "next" || to->Find(key) != nullptr) {
      return Refuse(env, "specs", absl::StrCat("key \"", leaf.key, "\""),
                    "other keys than next and those of the other specs");
    }
    RILL_RETURN_IF_ERROR(to->Set(key, leaf.spec))
        << "in EnvSpec of \"" << env.name << "\"";
  }
  return absl::OkStatus();
}

absl::Status CheckLegalActions(const EnvSpec& spec, size_t i) {
  const LegalActions& legal = spec.legal_actions[i];
  const std::string what = absl::StrCat("legal_actions[", i, "]");
  const LeafSpec* const action = spec.action.Find(legal.action);
  if (action == nullptr) {
    return Refuse(spec, what, absl::StrCat("\"", legal.action, "\""),
                  "a leaf of the action");
  }
  for (size_t k = 0; k < i; ++k) {
    if (spec.legal_actions[k].action != legal.action) continue;
    return Refuse(spec, what, absl::StrCat("\"", legal.action, "\" again"),
                  "one for each leaf of the action");
  }
  RILL_ASSIGN_OR_RETURN(const Shape shape, LegalMaskShape(*action));
  const LeafSpec* const mask = spec.observation.Find(legal.mask);
  if (mask != nullptr && mask->dtype == DType::kBool && mask->shape == shape) {
    return absl::OkStatus();
  }
  return Refuse(spec, absl::StrCat(what, ": \"", legal.mask, "\""),
                mask == nullptr ? "none" : mask->ToString(),
                absl::StrCat("a leaf of the observation, bool",
                             shape.ToString(), ", for ", action->ToString()));
}

absl::Status CheckSpec(const EnvSpec& spec) {
  if (spec.lanes < 1) {
    return Refuse(spec, "lanes", absl::StrCat(spec.lanes), ">= 1");
  }
  if (spec.action.leaves().empty()) {
    return Refuse(spec, "action", "no leaf", "one or more");
  }
  for (const TensorDictSpec::Leaf& leaf : spec.reward.leaves()) {
    if (leaf.spec.dtype == DType::kFloat32) continue;
    return Refuse(spec, absl::StrCat("reward \"", leaf.key, "\""),
                  leaf.spec.ToString(), "float32");
  }
  for (const std::string& group : spec.own_episodes) {
    if (spec.group_flags.Find(absl::StrCat(group, "/done")) != nullptr) {
      continue;
    }
    return Refuse(spec, "own_episodes",
                  absl::StrCat("\"", group, "\", which has no flags"),
                  "groups that AddFlags added");
  }
  for (size_t i = 0; i < spec.legal_actions.size(); ++i) {
    RILL_RETURN_IF_ERROR(CheckLegalActions(spec, i))
        << "in EnvSpec of \"" << spec.name << "\"";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddReward(absl::string_view key, const Shape& shape,
                       EnvSpec* spec) {
  return spec->reward.Set(key, LeafSpec::Unbounded(DType::kFloat32, shape));
}

absl::Status AddFlags(absl::string_view group, const Shape& shape,
                      EnvSpec* spec) {
  for (const absl::string_view flag : kFlags) {
    RILL_RETURN_IF_ERROR(spec->group_flags.Set(absl::StrCat(group, "/", flag),
                                               LeafSpec::Binary(shape)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDictSpec> RewardSpec(const EnvSpec& spec) {
  if (!spec.reward.leaves().empty()) return spec.reward;
  TensorDictSpec reward;
  RILL_RETURN_IF_ERROR(
      reward.Set("reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  return reward;
}

// The lane's three first: code that resolves flags finds `done` as leaf 0.
absl::StatusOr<TensorDictSpec> FlagSpec(const EnvSpec& spec) {
  TensorDictSpec flags;
  for (const absl::string_view flag : kFlags) {
    RILL_RETURN_IF_ERROR(flags.Set(flag, LeafSpec::Binary({1})));
  }
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "", spec.group_flags, &flags));
  return flags;
}

absl::StatusOr<TensorDictSpec> StepSpec(const EnvSpec& spec) {
  RILL_RETURN_IF_ERROR(CheckSpec(spec));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec reward, RewardSpec(spec));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec flags, FlagSpec(spec));
  TensorDictSpec step;
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "", spec.observation, &step));
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "", flags, &step));
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "", spec.action, &step));
  // Rewards lie below next alone. StepMdp copies a leaf below next that the
  // root has too, so a reward under an action's key would overwrite the action.
  for (const TensorDictSpec::Leaf& leaf : reward.leaves()) {
    if (step.Find(leaf.key) == nullptr) continue;
    return Refuse(spec, "reward", absl::StrCat("key \"", leaf.key, "\""),
                  "one that no other spec has");
  }
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "next/", spec.observation, &step));
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "next/", flags, &step));
  RILL_RETURN_IF_ERROR(AddLeaves(spec, "next/", reward, &step));
  return step;
}

absl::StatusOr<TensorDict> MakeStep(const EnvSpec& spec) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec step, StepSpec(spec));
  RILL_ASSIGN_OR_RETURN(TensorDict zero, step.Zero({spec.lanes}));
  if (spec.device.is_cpu()) return zero;
  return zero.To(spec.device);
}

absl::Status CheckActions(absl::string_view caller, const EnvSpec& spec,
                          const TensorDict& step) {
  for (const TensorDictSpec::Leaf& leaf : spec.action.leaves()) {
    const Tensor* action = step.Find(leaf.key);
    if (action == nullptr) {
      return InvalidArgument(caller, ": leaf \"", leaf.key,
                             "\" of the action is missing");
    }
    // One pass over all lanes; rows are looked at only to name the lane.
    const absl::Status all =
        leaf.spec.CheckValues(leaf.key, {spec.lanes}, *action);
    if (all.ok()) continue;
    for (int64_t lane = 0; lane < spec.lanes; ++lane) {
      RILL_ASSIGN_OR_RETURN(const Tensor row, action->Index(lane));
      RILL_RETURN_IF_ERROR(leaf.spec.CheckValues(leaf.key, {}, row))
          << caller << ": lane " << lane;
    }
    // A layout that is wrong as a whole: no single row shows it.
    return all;
  }
  return absl::OkStatus();
}

}  // namespace rill
