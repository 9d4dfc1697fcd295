// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_ENV_SPEC_H_
#define RILL_ENVS_ENV_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/device/device.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// Which options of an action are legal in a state.
//
// The mask is a leaf of the observation, bool, true where an option is legal.
// LegalMaskShape (specs/legal_choices.h) has its layout: [n] for Categorical(n)
// and OneHot(n), the sum of nvec for the Multi forms, behind the dimensions of
// a group: [agents, n]. Each choice has a legal option wherever an action is
// taken, also of an agent that is done while its lane goes on; a state in which
// a lane is done needs none. StepDriver (envs/steps/step_driver.h), by which
// all that steps environments does so, refuses other actions of environments in
// host memory. Random actions, explorers and CheckEnv keep to the mask.
struct LegalActions {
  std::string action = "action";     // Categorical, OneHot or a Multi form.
  std::string mask = "action_mask";  // A leaf of the observation.
  // True: others are taken too. The environment does a legal one instead, and
  // writes it over the leaf of its step (ActionMask).
  bool replaces_others = false;

  friend bool operator==(const LegalActions&, const LegalActions&) = default;
};

// The layout of an environment's steps. Shapes are without the lanes.
//
// Data follow TorchRL's TED layout. A step is a dictionary [lanes]. At its root
// stand the state that the action is taken in (observation and done) and the
// action; below `next` stand the state after it and the reward.
//
// Groups. The leaves of several agents stand below one key, in each of the
// four specs: `agents/observation` [n, ...], `agents/action`, `agents/reward`
// [n, 1], `agents/done` [n, 1]. The flags at the root are the lane's.
//
// Example (EnvSpecTest.Example runs it):
//   EnvSpec spec = {.name = "Tag", .lanes = 16};
//   RILL_RETURN_IF_ERROR(spec.observation.Set(
//       "agents/observation", LeafSpec::Unbounded(DType::kFloat32, {2, 8})));
//   RILL_RETURN_IF_ERROR(spec.action.Set(
//       "agents/action", LeafSpec::Categorical(5, DType::kInt64, {2})));
//   RILL_RETURN_IF_ERROR(AddReward("agents/reward", {2, 1}, &spec));
//   RILL_RETURN_IF_ERROR(AddFlags("agents", {2, 1}, &spec));
struct EnvSpec {
  std::string name;                 // "CartPole-v1"
  int64_t lanes = 1;                // Copies that step together, >= 1.
  TensorDictSpec observation = {};  // Leaves of a state, flags left out.
  TensorDictSpec action = {};
  // Float32 leaves; `reward` [1] where nothing was added.
  TensorDictSpec reward = {};
  // Flags of groups, beside `done`, `terminated` and `truncated` [1] of a lane.
  TensorDictSpec group_flags = {};
  // Groups whose episodes end and begin on their own while the lane goes on:
  // keys that AddFlags added.
  std::vector<std::string> own_episodes = {};
  // At most one for each leaf of the action.
  std::vector<LegalActions> legal_actions = {};
  Device device = Device::Cpu();  // Where the leaves of steps lie.
  // False: BeginStep looks at no action on a device, for which it would wait.
  bool checks_actions = true;
};

// Adds a reward, or the flags `key/done`, `key/terminated`, `key/truncated` of
// a group. Errors as TensorDictSpec::Set.
absl::Status AddReward(absl::string_view key, const Shape& shape,
                       EnvSpec* spec);
absl::Status AddFlags(absl::string_view group, const Shape& shape,
                      EnvSpec* spec);

// The leaf `reward` [1] where nothing was added.
absl::StatusOr<TensorDictSpec> RewardSpec(const EnvSpec& spec);
// The flags of the lane and of all groups.
absl::StatusOr<TensorDictSpec> FlagSpec(const EnvSpec& spec);

// A whole step: root, action, next. INVALID_ARGUMENT: fewer than one lane, an
// action without a leaf, a reward that is not float32. So are a group of
// own_episodes without flags, a key that two specs use, and legal actions of no
// leaf of choices, or whose mask is no such leaf.
absl::StatusOr<TensorDictSpec> StepSpec(const EnvSpec& spec);

// Zeroed leaves of StepSpec, [lanes], on the device of `spec`.
absl::StatusOr<TensorDict> MakeStep(const EnvSpec& spec);

// INVALID_ARGUMENT, starting with `caller`, names the first lane whose action
// is outside the spec, and the value. Actions on a device are copied to the
// host for that, behind the work on the default stream; those of an unbounded
// spec are not. Cost: one pass over the actions, and the copy.
absl::Status CheckActions(absl::string_view caller, const EnvSpec& spec,
                          const TensorDict& step);

}  // namespace rill

#endif  // RILL_ENVS_ENV_SPEC_H_
