// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TRANSFORMED_ENV_H_
#define RILL_ENVS_TRANSFORMED_ENV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/envs/transformed/transformed_env_plan.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/steps/device_steps.h"

namespace rill {

// An environment and the transforms beside it, as one environment: policies,
// rollouts, evaluators and collectors see the steps that the transforms make.
// TorchRL's TransformedEnv.
//
// A leaf that no transform replaces is the environment's own. Leaves of the
// root that transforms work on are kept apart from those of step(): a step
// depends on its action and on nothing else that the caller may write.
//
// Groups: transforms are reset with their lane. One that changes an observation
//   of a group that begins on its own (ResetMask::groups) is refused.
// Device/Stream: where the environment is on a device and all transforms work
//   there (DeviceSteps), they do so by the thread's current stream, and the host
//   goes on. A value that one of them does not take is the error of the next
//   call; leaves of that step are then any.
//   Else all of them work in host memory. The leaves that they read are copied
//   to pinned memory, and those that they make to the device, by its default
//   stream. The copies are complete when Reset and EndStep return.
//   Leaves that no transform reads or makes stay on the device in both cases.
// Thread-safety: thread-compatible. After an error of a transform or of a copy
//   all lanes are to be reset.
// Cost: that of environment and transforms, and a copy of states of up to 8 KiB
//   a call; allocates nothing by itself. On a device no wait. The flags
//   `next/done` go to the host where a transform may change them. With
//   transforms in host memory a step waits twice more for copies of whole
//   leaves, three times where one reads the action. A reset of any lane waits up
//   to twice.
//
// Example (TransformedEnvTest.Example runs it):
//   TransformedEnv::Transforms transforms;
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
//                         StepCounter::Create({.max_steps = 200}));
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), RewardSum::Create({}));
//   RILL_ASSIGN_OR_RETURN(auto cart_pole, MakeCartPole({.lanes = 16}));
//   RILL_ASSIGN_OR_RETURN(auto env,
//                         TransformedEnv::Create(std::move(cart_pole),
//                                                std::move(transforms)));
class TransformedEnv final : public Env {
 public:
  using Transforms = std::vector<std::unique_ptr<StepTransform>>;

  // Transforms in order, the first next to the environment. INVALID_ARGUMENT
  // names the one that does not fit what comes before it, or that breaks what
  // an Env promises of its steps.
  static absl::StatusOr<std::unique_ptr<TransformedEnv>> Create(
      std::unique_ptr<Env> env, Transforms transforms);

  // Transforms that draw random numbers begin anew too.
  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  // Where a simulator fails, its error comes back from EndStep, and the
  // transforms have seen the step.
  absl::Status BeginStep() override;
  absl::Status EndStep() override;

  // UNIMPLEMENTED where the environment cannot save its state.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

  // The errors of LoadState and LoadTransforms but for the environment's own
  // state.
  absl::Status CheckState(const TensorDict& state) const;

  // The same where lanes are to be reset after the load: without the
  // environment's state.
  absl::StatusOr<TensorDict> SaveTransforms() const;
  absl::Status LoadTransforms(const TensorDict& state);

  // Whether a transform has any; without, the next two have nothing to do.
  bool has_statistics() const { return has_statistics_; }
  // The statistics of the transforms that have some (StepPlan::statistics):
  // `transforms/<i>/name`, and `transforms/<i>/state` as in a saved state,
  // without what belongs to lanes. The tensors are shared: transforms write new
  // ones as long as somebody holds them.
  absl::StatusOr<TensorDict> Statistics() const;
  // FAILED_PRECONDITION, unchanged, where they are of other transforms. The
  // root keeps the old scale until a reset.
  absl::Status LoadStatistics(const TensorDict& statistics);

 protected:
  // Not learning, a transform with statistics is StepPlan::frozen.
  void OnSetLearning() override;

 private:
  using Steps = envs_internal::TransformedSteps;

  // A tensor of a state, and what RestoreStates sets in its place.
  struct StateLeaf {
    size_t transform;
    std::string key;
    Tensor before = {};
    int64_t copied = -1;  // Bytes of a copy; -1: shared with the state.
  };

  TransformedEnv(std::unique_ptr<Env> env, Transforms transforms, Steps steps,
                 std::vector<TensorDict> states);

  absl::Status CheckStep() const;
  bool HasRows(size_t i) const;  // The statistics of a transform.
  absl::Span<const int64_t> FindBegun(const ResetMask& mask);
  absl::Status CopyAll(absl::Span<const Steps::RowCopy> copies) const;
  // The rows of these lanes; on a device those of the mask there.
  absl::Status CopyRows(absl::Span<const Steps::RowCopy> copies,
                        absl::Span<const int64_t> lanes,
                        const uint8_t* mask) const;
  absl::Status RunReset(const ResetMask& mask);
  absl::Status RunActions();
  absl::Status RunStep();
  // Takes over what the device has found out: done_, and the error of values.
  absl::Status ReadEnds(bool wants_all) const;
  DeviceSteps::Call DeviceCall(size_t i) const;
  // A state where the transforms work.
  absl::StatusOr<TensorDict> Place(const TensorDict& state) const;
  absl::Status AwaitDevice() const;
  void KeepStates();
  void RestoreStates();
  // A call of transform i, which restores the states where it fails.
  template <typename Fn>
  absl::Status Call(size_t i, absl::string_view function, const Fn& call);
  // CheckState has passed the state.
  absl::Status AdoptTransforms(const TensorDict& state);

  const std::unique_ptr<Env> env_;
  const Transforms transforms_;
  const Steps steps_;
  std::vector<const StepTransform*> acting_;  // These, or those that stand in.
  // Lanes that are done and not reset; on a device also StepsOnDevice::kUnread.
  mutable std::vector<uint8_t> done_;
  std::vector<uint8_t> mask_;         // Lanes of which something was reset.
  std::vector<int64_t> lanes_found_;  // Room for the result of FindLanes.
  absl::Status failure_;              // Of a simulator, between the two calls.

  std::vector<TensorDict> states_;       // Of each transform.
  std::vector<StateLeaf> state_leaves_;  // A walk over states would build keys.
  bool has_statistics_ = false;
};

}  // namespace rill

#endif  // RILL_ENVS_TRANSFORMED_ENV_H_
