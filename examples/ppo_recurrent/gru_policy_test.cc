// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/gru_policy.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo_recurrent {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Lt;

constexpr int64_t kLanes = 5, kInputs = 3, kUnits = 16, kActions = 4;

// A policy with the networks that it acts by.
struct Owned {
  Owned()
      : networks(kInputs, kUnits, kActions), policy(&networks, &updates, 7) {
    networks.Initialize(Rng(3, RngStream::kInit));
    for (float& p : networks.parameters()) p *= 4;
  }
  GruActorCritic<float> networks;
  int64_t updates = 2;
  GruPolicy policy;
};

TensorDict Root() {
  const Rng rng(9, RngStream::kUser);
  std::vector<float> observation, hidden;
  std::vector<bool> mask;
  for (uint32_t i = 0; i < kLanes * kInputs; ++i) {
    observation.push_back(rng.UniformFloat(0, i));
  }
  for (uint32_t i = 0; i < kLanes * kUnits; ++i) {
    hidden.push_back(2 * rng.UniformFloat(1, i) - 1);
  }
  for (uint32_t i = 0; i < kLanes * kActions; ++i) mask.push_back(i % 3 != 0);
  return *TensorDict::Create(
      {kLanes},
      {{"observation", *Tensor::From<float>(observation, {kLanes, kInputs})},
       {"hidden", *Tensor::From<float>(hidden, {kLanes, kUnits})},
       {"action_mask", *Tensor::From<bool>(mask, {kLanes, kActions})}});
}

PolicySubject MakeSubject() {
  auto owned = std::make_shared<Owned>();
  return {.policy = std::shared_ptr<Policy>(owned, &owned->policy),
          .root = Root(),
          .action = LeafSpec::Categorical(kActions),
          .mask_key = "action_mask"};
}

INSTANTIATE_TEST_SUITE_P(Gru, PolicyConformanceTest,
                         ::testing::Values(MakeSubject));

TensorDict StepFor(const Policy& policy, const TensorDict& root) {
  TensorDict step = root;
  for (const auto& leaf : policy.output_spec().leaves()) {
    RILL_EXPECT_OK(step.Set(leaf.key, *leaf.spec.Zero(root.batch_shape())));
  }
  RILL_EXPECT_OK(
      step.Set("action", *LeafSpec::Categorical(kActions).Zero({kLanes})));
  return step;
}

TEST(GruPolicyTest, ActsWithinTheMaskAndWritesAllOutputs) {
  Owned owned;
  const TensorDict root = Root();
  const bool* const mask = root.Find("action_mask")->data<bool>();
  for (int64_t i = 0; i < 50; ++i) {
    TensorDict step = StepFor(owned.policy, root);
    EXPECT_THAT(
        owned.policy.Act(root, {.step = i, .explore = i % 2 == 0}, &step),
        IsOkAndHolds(2));
    RILL_ASSERT_OK_AND_ASSIGN(const auto action, step.Flat<int64_t>("action"));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      EXPECT_TRUE(mask[lane * kActions + action[lane]]);
    }
    EXPECT_THAT(step.Flat<float>("log_prob"), IsOkAndHolds(Each(Lt(0.0f))));
  }
}

TEST(GruPolicyTest, ALeafOfAnotherSizeIsNamed) {
  Owned owned;
  TensorDict root = Root();
  TensorDict step = StepFor(owned.policy, root);
  RILL_ASSERT_OK(
      root.Set("hidden", *Tensor::Zeros(DType::kFloat32, {kLanes, 8})));
  EXPECT_THAT(owned.policy.Act(root, {}, &step),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"hidden\": got 40 values, want 16")));
}

}  // namespace
}  // namespace rill::ppo_recurrent
