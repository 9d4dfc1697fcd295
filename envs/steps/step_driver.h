// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_STEPS_STEP_DRIVER_H_
#define RILL_ENVS_STEPS_STEP_DRIVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/stream.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/steps/host_mirror.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/envs/steps/step_carry.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The loop that everything which steps an Env shares: act, step, carry over,
// reset what is done. Its step is the environment's, with the leaves that the
// policy writes, on the environment's device.
//
// Thread-safety: thread-compatible.
// Device/Stream: leaves on a device are moved on `stream`, by default the
//   device's default one, in its order: root() and step() are for work on that
//   stream. Where it is another one, the default stream waits for it before the
//   environment resets or steps, as Env wants; the host goes on.
// Values: with RILL_CHECK_FINITE (tensordict/finite_check.h) one of environment
//   or policy that is not finite is INVALID_ARGUMENT of Reset, Act or Step.
// Cost: nothing is looked up or allocated after Create. On a device, ResetEnded
//   and ReadEnds wait once each for flags, which the host reads.
class StepDriver {
 public:
  // Both must outlive the driver. Without a policy the caller writes actions.
  // The errors of StepSpec; INVALID_ARGUMENT names an output of the policy
  // that the environment has too, and a log-probability (IsLogProbKey) where
  // the environment may do another action (LegalActions::replaces_others).
  // `stream` is of the environment's device; one in host memory has none.
  static absl::StatusOr<StepDriver> Create(Env* env, Policy* policy = nullptr,
                                           const Stream* stream = nullptr);

  absl::Status ResetAll();
  // The policy chooses, and is given the stream (ActContext::stream); returns
  // the version of its weights. The first call after ResetAll checks that
  // leaves are filled in place.
  absl::StatusOr<int64_t> Act(const ActContext& context);
  // INVALID_ARGUMENT names lane and leaf of an action that is not legal
  // (EnvSpec::legal_actions), FAILED_PRECONDITION a lane without any; no lane
  // has moved then. Leaves on a device are not looked at.
  absl::Status Step();
  // Carry, then ResetEnded: the root is the next step's beginning.
  absl::Status Advance();
  // Copies `next` to the root.
  absl::Status Carry() { return carry_.Run(stream()); }
  // Resets what is done at the root: lanes, and groups with episodes of their
  // own whose agents are all done.
  absl::Status ResetEnded();
  // Resets without waiting for ends, and makes recurrent state zero there.
  absl::Status Reset(const ResetMask& mask);

  // The layout of step(): StepSpec and the policy's outputs.
  const TensorDictSpec& spec() const { return spec_; }
  // The whole step; the leaves stay the same tensors.
  const TensorDict& step() const { return step_; }
  TensorDict* mutable_step() { return &step_; }
  // The part that a policy sees; shares the bytes.
  const TensorDict& root() const { return root_; }
  // Brings done() and reward() of the last step to the host. Nothing to do
  // where the environment is in host memory.
  absl::Status ReadEnds() { return host_.mirror.Update(stream()); }
  // One a lane, of the step that ReadEnds read. The reward is the sum of a
  // lane's.
  absl::Span<const bool> done() const { return done_; }
  double reward(int64_t lane) const;
  // The lanes that ResetAll or ResetEnded has begun.
  absl::Span<const uint8_t> begun() const { return mask_; }

 private:
  // A leaf of the action whose legal options are checked.
  struct Legal {
    std::string key;
    std::string mask_key;
    LeafSpec spec;
    Tensor action;
    Tensor mask;
  };
  // Leaves that are read on the host.
  struct HostLeaves {
    std::vector<Tensor> leaves;
    HostMirror mirror;
  };

  // Null: the environment is in host memory.
  const Stream* stream() const { return stream_ ? &*stream_ : nullptr; }
  // The environment's work comes behind what is on the stream.
  absl::Status LetEnvironmentWait() const;
  // A call of the environment, for which the stream is the current one.
  template <typename Fn>
  absl::Status OnStream(const Fn& call, absl::string_view function) const;
  absl::Status CheckFinite(absl::string_view caller,
                           const TensorDict& leaves) const;
  absl::Status AddOutputs();
  absl::Status AddLegal();
  absl::Status AddHostLeaf(absl::string_view key, HostLeaves* to) const;
  absl::Status MaskEnded();

  Env* env_ = nullptr;
  Policy* policy_ = nullptr;
  std::optional<Stream> stream_;
  TensorDictSpec spec_;
  TensorDict step_;
  TensorDict root_;
  TensorDict acted_;    // What the policy writes.
  TensorDict stepped_;  // What the environment writes below next.
  int64_t steps_ = 0;   // Since ResetAll.
  StepCarry carry_;
  std::vector<Tensor> recurrent_;  // At the root.
  std::vector<Legal> legal_;
  InPlaceCheck in_place_;
  bool checked_ = false;

  HostLeaves host_;   // Below next: done, rewards.
  HostLeaves ended_;  // At the root: done, done of groups.
  absl::Span<const bool> done_;
  std::vector<uint8_t> mask_;
  std::vector<uint8_t> group_mask_;  // [own_episodes, lanes].
};

}  // namespace rill

#endif  // RILL_ENVS_STEPS_STEP_DRIVER_H_
