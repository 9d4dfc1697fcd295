// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TRANSFORMED_ENV_H_
#define RILL_ENVS_TRANSFORMED_ENV_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// An environment and the transforms beside it, as one environment: policies,
// rollouts, evaluators and collectors see the steps that the transforms make.
// TorchRL's TransformedEnv.
//
// The environment writes leaves that no transform replaces straight into the
// caller's step. Leaves of the root that transforms work on are kept here too:
// a step depends on its action and on nothing else that the caller holds.
//
// Thread-safety: thread-compatible. After an error of Reset or Step that is
//   not about action or leaves, all lanes are to be reset.
// Cost: that of environment and transforms, and a look-up a leaf a step.
//   Allocates nothing while steps keep their leaves and no state changes.
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

  // The environment's.
  absl::string_view name() const override { return env_->name(); }
  int64_t lanes() const override { return env_->lanes(); }
  const TensorDictSpec& observation_spec() const override {
    return observation_spec_;
  }
  const LeafSpec& action_spec() const override { return action_spec_; }
  // Transforms that draw random numbers begin anew too.
  absl::Status Seed(uint64_t seed) override;

  absl::Status Reset(absl::Span<const uint8_t> mask, TensorDict* root) override;
  absl::Status Step(TensorDict* step) override;

  // UNIMPLEMENTED where the environment cannot save its state.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

  // What LoadState and LoadTransforms would refuse but for the environment's
  // own state.
  absl::Status CheckState(const TensorDict& state) const;

  // The same where lanes are to be reset after the load: without the
  // environment's state.
  absl::StatusOr<TensorDict> SaveTransforms() const;
  absl::Status LoadTransforms(const TensorDict& state);

 private:
  // Where the rows of a leaf lie between two transforms.
  struct Buffer {
    std::string key;
    LeafSpec spec;
    size_t stage = 0;      // How many transforms come before it.
    bool is_last = false;  // Those behind the last transform see it.
    bool is_kept = false;  // A leaf of the root that is kept here.
    int64_t width = 0;     // Bytes of a lane.
    Tensor tensor = {};

    // The tensor is the caller's.
    bool is_outer() const { return is_last && !is_kept; }
  };
  // The buffers of the leaves so far, by their keys.
  using Current = std::map<std::string, size_t, std::less<>>;
  // Rows that go from one buffer to another.
  struct Link {
    size_t from = 0;
    size_t to = 0;
  };
  // Leaves of the caller, and their buffers.
  struct Outer {
    BoundRows rows;
    std::vector<size_t> buffers;
  };

  TransformedEnv(std::unique_ptr<Env> env, Transforms transforms);

  // Making (transformed_env_plan.cc).
  absl::Status Plan();
  absl::StatusOr<TensorDictSpec> AddTransform(size_t i,
                                              const TensorDictSpec& before,
                                              Current* current);
  void ForkRoots(size_t stage, const StepPlan& plan, Current* current,
                 std::vector<Link>* copies);
  absl::Status AddAction(size_t stage, const StepPlan& plan, Current* current,
                         std::vector<size_t>* used);
  absl::StatusOr<size_t> FindBuffer(const BoundRows::Leaf& leaf,
                                    const Current& current) const;
  bool IsUsedRoot(absl::string_view key) const;
  size_t WriteBuffer(const BoundRows::Leaf& leaf, const LeafSpec& spec,
                     size_t stage, bool is_needed, Current* current);
  size_t AddBuffer(absl::string_view key, const LeafSpec& spec, size_t stage);
  absl::Status SetSpecs(const TensorDictSpec& last);
  absl::Status MakeBuffers(const Current& current);
  void LinkKept(const Current& current);

  // Running.
  absl::Status BindOuter(absl::string_view caller, const TensorDict& dict,
                         Outer* outer);
  absl::Status Resolve();
  absl::Status CheckStep(const TensorDict& step) const;
  void CopyRows(const Link& link);
  void StartStates();
  void CommitStates();
  absl::Status Annotate(size_t i, const absl::Status& status) const;

  // Saving (transformed_env_state.cc).
  static std::string KeptKey(const Buffer& buffer);
  // CheckState has passed the state.
  absl::Status AdoptTransforms(const TensorDict& state);

  const std::unique_ptr<Env> env_;
  const Transforms transforms_;
  TensorDictSpec observation_spec_;
  LeafSpec action_spec_;

  std::vector<Buffer> buffers_;
  std::vector<std::vector<size_t>> used_;       // Buffers of each transform.
  std::vector<std::vector<BoundLeaf>> leaves_;  // The same, resolved.
  // Before the calls of a transform: leaves that it changes and an earlier one
  // keeps.
  std::vector<std::vector<Link>> copies_;
  std::vector<Link> carried_;  // From next to the kept leaves of the root.
  Outer root_;
  Outer step_;  // The action and what is below next.
  size_t done_buffer_ = 0;
  bool replaces_action_ = false;  // The environment gets another leaf.

  bool is_resolved_ = false;
  TensorDict env_step_;
  InPlaceCheck in_place_;
  bool is_checked_ = false;
  std::vector<uint8_t> done_;  // Lanes that are done and not reset.

  std::vector<TensorDict> states_;
  std::vector<TensorDict> next_states_;
};

}  // namespace rill

#endif  // RILL_ENVS_TRANSFORMED_ENV_H_
