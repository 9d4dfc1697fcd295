// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEP_DRIVER_H_
#define RILL_ENVS_STEP_DRIVER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/envs/step_spec.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The loop that everything which steps an Env shares: act, step, carry over,
// reset what is done. Owns one step's leaves and keeps them for ever.
//
// Thread-safety: thread-compatible.
class StepDriver {
 public:
  // `env` must outlive the driver. The errors of MakeStep.
  static absl::StatusOr<StepDriver> Create(Env* env);

  absl::Status ResetAll();
  // Lets `act` choose and steps / steps with what the leaf `action` holds.
  // The first step after ResetAll checks that leaves are filled in place.
  absl::Status Step(ActFunction act);
  absl::Status Step();
  // Carries `next` over to the root and resets the lanes that are done.
  absl::Status Advance();
  // Resets the lanes with mask[lane] != 0 without waiting for their ends.
  absl::Status Reset(absl::Span<const uint8_t> mask);

  // The whole step; the leaves stay the same tensors.
  const TensorDict& step() const { return step_; }
  TensorDict* mutable_step() { return &step_; }
  // What a policy sees; shares the bytes.
  const TensorDict& root() const { return root_; }
  const Tensor& action() const { return action_; }
  // Flags and rewards after the last step, one a lane.
  absl::Span<const bool> done() const { return done_; }
  absl::Span<const float> reward() const { return reward_; }

 private:
  Env* env_ = nullptr;
  TensorDict step_;
  TensorDict root_;
  Tensor action_;
  StepCarry carry_;
  InPlaceCheck in_place_;
  bool checked_ = false;
  absl::Span<const bool> done_;
  absl::Span<const float> reward_;
  std::vector<uint8_t> mask_;
};

}  // namespace rill

#endif  // RILL_ENVS_STEP_DRIVER_H_
