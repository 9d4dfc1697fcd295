// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/step_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/tensordict/key.h"

namespace rill {
namespace {

// Keys that mean something else in a step.
bool IsReserved(absl::string_view key) {
  absl::string_view head, rest;
  SplitKeyHead(key, &head, &rest);
  return head == "next" || head == "action" || head == "reward" ||
         head == "done" || head == "terminated" || head == "truncated";
}

// The leaves of a state: observations and flags, below `prefix`.
absl::Status AddState(const Env& env, absl::string_view prefix,
                      TensorDictSpec* spec) {
  for (const TensorDictSpec::Leaf& leaf : env.observation_spec().leaves()) {
    RILL_RETURN_IF_ERROR(spec->Set(absl::StrCat(prefix, leaf.key), leaf.spec));
  }
  for (absl::string_view flag : {"done", "terminated", "truncated"}) {
    RILL_RETURN_IF_ERROR(
        spec->Set(absl::StrCat(prefix, flag), LeafSpec::Binary({1})));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorDictSpec> StepSpec(const Env& env) {
  for (const TensorDictSpec::Leaf& leaf : env.observation_spec().leaves()) {
    if (IsReserved(leaf.key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "StepSpec: observation_spec of \"", env.name(), "\": got key \"",
          leaf.key,
          "\", want none of next, action, reward, done, terminated, "
          "truncated"));
    }
  }
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(AddState(env, "", &spec));
  RILL_RETURN_IF_ERROR(spec.Set("action", env.action_spec()));
  RILL_RETURN_IF_ERROR(AddState(env, "next/", &spec));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  return spec;
}

absl::StatusOr<TensorDict> MakeStep(const Env& env) {
  if (env.lanes() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("MakeStep: lanes of \"",
                                                   env.name(), "\": got ",
                                                   env.lanes(), ", want >= 1"));
  }
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec, StepSpec(env));
  return spec.Zero({env.lanes()});
}

absl::Status StepMdp(TensorDict* step) {
  RILL_ASSIGN_OR_RETURN(StepCarry carry, StepCarry::Bind(*step, *step));
  return carry.Run();
}

}  // namespace rill
