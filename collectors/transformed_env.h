// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TRANSFORMED_ENV_H_
#define RILL_COLLECTORS_TRANSFORMED_ENV_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/transform.h"

namespace rill::collectors_internal {

// An environment and the transforms beside it, as one: what a collector steps.
// The environment keeps leaves of its own, so that a transform may replace
// leaves, add some, or change their layout.
//
// Thread-safety: thread-compatible. After an error of Reset or Step all lanes
// are to be reset.
class TransformedEnv {
 public:
  using Transforms = std::vector<std::unique_ptr<Transform>>;

  // INVALID_ARGUMENT where a transform does not fit the specs before it, or
  // takes flags away that a collector needs. Both must outlive the result.
  static absl::StatusOr<std::unique_ptr<TransformedEnv>> Create(
      Env* env, const Transforms* transforms);

  // A whole step after the transforms.
  const TensorDictSpec& spec() const { return spec_; }
  // What a policy sees, and the lanes of it that are done.
  const TensorDict& root() const { return root_; }
  absl::Span<const bool> done() const { return done_; }
  // What the environment reads.
  const Tensor& action() const { return action_; }

  // Begins episodes in the lanes with mask[lane] != 0.
  absl::Status Reset(absl::Span<const uint8_t> mask);
  // Steps the environment. `check_in_place`: whether it kept to its leaves.
  absl::Status Step(bool check_in_place);
  // Lets the transforms see the step; step() is whole then.
  absl::Status ApplyTransforms();
  // Leaves are the same tensors at every step if there are no transforms.
  const TensorDict& step() const {
    return transforms_->empty() ? env_step_ : step_;
  }
  // Carries `next` over to the root.
  absl::Status Carry();

  // Environment, transforms and root. `episodes_continue` false: the
  // environment cannot save its state, and lanes are to be reset after Load.
  absl::StatusOr<TensorDict> SaveState(bool* episodes_continue) const;
  // FAILED_PRECONDITION, unchanged, where the state is of another environment
  // or of other transforms.
  absl::Status LoadState(const TensorDict& state, bool episodes_continue);

 private:
  TransformedEnv(Env* env, const Transforms* transforms)
      : env_(env), transforms_(transforms) {}

  absl::Status MakeSpec();
  absl::Status MakeLeaves();
  absl::Status MergeReset(absl::Span<const uint8_t> mask,
                          const TensorDict& reset);
  absl::Status CheckState(const TensorDict& state,
                          bool episodes_continue) const;
  absl::Status LoadTransforms(const TensorDict& state);

  Env* env_;
  const Transforms* transforms_;
  TensorDictSpec spec_;
  TensorDictSpec root_spec_;  // Of root_.

  TensorDict env_step_;  // The environment's own leaves.
  TensorDict env_root_;  // The root of env_step_.
  InPlaceCheck in_place_;
  TensorDict root_;      // Without transforms: env_root_.
  TensorDict pristine_;  // root_, action, the environment's next.
  TensorDict step_;      // pristine_ after OnStep; made anew each step.
  Tensor action_;
  StepCarry carry_;
  absl::Span<const bool> done_;
};

}  // namespace rill::collectors_internal

#endif  // RILL_COLLECTORS_TRANSFORMED_ENV_H_
