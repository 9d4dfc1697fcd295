// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEP_TRANSFORM_H_
#define RILL_TRANSFORMS_STEP_TRANSFORM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/option_values.h"  // IWYU pragma: export
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

class StepTransform;

// The leaves of steps that a StepTransform works on, and their specs after it.
struct StepPlan {
  // The spec of a whole step (root, action, "next") as transforms behind this
  // one see it. A leaf below next, except rewards, is at the root too.
  TensorDictSpec spec;
  // The leaves that the calls get, in this order. kRead: the leaf before this
  // transform. kUpdate: the same, changed in place. kWrite: the leaf after it,
  // new or of another layout, which keeps its values between the calls.
  // The leaf "action" goes the other way: kRead is the action that was chosen,
  // kWrite the one that the environment gets. kUpdate is the chosen one, which
  // the transform changes to what is done: steps then hold that. It is refused
  // where a transform further from the environment makes the action from one of
  // its own, as the change would not reach that one.
  // Where only a leaf below next changes, its twin at the root does from the
  // next step on. Earlier transforms read their own root.
  std::vector<BoundRows::Leaf> leaves = {};
  // The keys of the state that are statistics: of all rows seen, whatever lanes
  // they were in. Each has a form of VecNorm's (episodes/vec_norm.h), so that
  // collectors merge those of their workers and hand them to other workers. The
  // rest of a state belongs to its lanes.
  std::vector<std::string> statistics = {};
  // With statistics: a transform of the same leaves and the same state that
  // applies them and leaves them as they are. It works in evaluations.
  std::shared_ptr<const StepTransform> frozen = nullptr;
  // The leaf of the root that has the legal options of `action`; empty: the
  // transform knows of none. The environment with this transform beside it
  // declares it (EnvSpec::legal_actions).
  std::string mask_key = {};
};

// Changes the steps of an environment: the root that a policy sees, and the
// action that the environment gets. envs/transformed_env.h makes an environment
// of one and such transforms. It resolves the leaves once and carries next over
// to the root.
//
// A transform is a pure function of its leaves and a state, and both are the
// caller's. State: as in batch_transform.h. A tensor of it that nobody else
// holds (MayReuse, specs/bound_rows.h) may also be written in place: a
// caller that passes such a one has copied what it must keep.
//
// Shapes: leaves are [lanes, ...], one after another in host memory.
// Thread-safety: immutable. A caller serialises calls that share a state.
// Implementations pass envs/conformance (step_transform_conformance.h).
class StepTransform {
 public:
  using Leaves = absl::Span<const BoundLeaf>;

  virtual ~StepTransform() = default;

  // "StepCounter": named in errors and checkpoints.
  virtual absl::string_view name() const = 0;
  // As BatchTransform::option_values.
  virtual OptionValues option_values() const { return {}; }

  // `step` is the spec of a whole step before this transform. INVALID_ARGUMENT
  // or NOT_FOUND where the transform cannot work on such steps.
  virtual absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const = 0;

  // The state before the first reset; empty where there is none. States keep
  // its keys, dtypes and shapes.
  virtual absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const {
    return TensorDict();
  }

  // The environment was seeded: what is drawn from the next reset on is a
  // function of this seed too. For transforms that draw random numbers.
  virtual absl::Status OnSeed(uint64_t /*seed*/, TensorDict* /*state*/) const {
    return absl::OkStatus();
  }

  // After the lanes with mask[lane] != 0 were reset: changes the rows of these
  // lanes in leaves of the root, and no others.
  virtual absl::Status OnReset(absl::Span<const uint8_t> /*mask*/,
                               Leaves /*leaves*/, TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  // Before a step: from the action that was chosen to the one that the
  // environment gets.
  virtual absl::Status OnAction(Leaves /*leaves*/,
                                TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
  // After a step: changes leaves below next.
  virtual absl::Status OnStep(Leaves /*leaves*/, TensorDict* /*state*/) const {
    return absl::OkStatus();
  }
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_STEP_TRANSFORM_H_
