// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/env_spec.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/step_mdp.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

EnvSpec Observing(const std::string& key) {
  EnvSpec spec = {.name = "Spec"};
  EXPECT_TRUE(
      spec.observation.Set(key, LeafSpec::Unbounded(DType::kFloat32, {2}))
          .ok());
  EXPECT_TRUE(spec.action.Set("action", LeafSpec::Categorical(2)).ok());
  return spec;
}

TEST(StepSpecTest, HoldsRootActionAndNext) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec spec, StepSpec(env->spec()));
  EXPECT_EQ(*spec.Find("action"), LeafSpec::Categorical(3));
  EXPECT_EQ(*spec.Find("next/truncated"), LeafSpec::Binary({1}));
  EXPECT_EQ(*spec.Find("next/reward"),
            LeafSpec::Unbounded(DType::kFloat32, {1}));
  EXPECT_EQ(spec.Find("reward"), nullptr);
  EXPECT_EQ(spec.leaves().size(), 10);
}

TEST(EnvSpecTest, Example) {
  EnvSpec spec = {.name = "Tag", .lanes = 16};
  RILL_ASSERT_OK(spec.observation.Set(
      "agents/observation", LeafSpec::Unbounded(DType::kFloat32, {2, 8})));
  RILL_ASSERT_OK(spec.action.Set("agents/action",
                                 LeafSpec::Categorical(5, DType::kInt64, {2})));
  RILL_ASSERT_OK(AddReward("agents/reward", {2, 1}, &spec));
  RILL_ASSERT_OK(AddFlags("agents", {2, 1}, &spec));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec step, StepSpec(spec));
  EXPECT_NE(step.Find("next/agents/reward"), nullptr);
  EXPECT_EQ(step.Find("next/reward"), nullptr);
  EXPECT_NE(step.Find("next/done"), nullptr);
  EXPECT_NE(step.Find("agents/terminated"), nullptr);
  EXPECT_NE(step.Find("agents/action"), nullptr);
}

TEST(EnvSpecTest, NamesWhatDoesNotFit) {
  EnvSpec spec = Observing("x");
  spec.own_episodes = {"agents"};
  EXPECT_THAT(StepSpec(spec), StatusIs(kInvalidArgument,
                                       HasSubstr("\"agents\", which has no")));
  spec = Observing("x");
  RILL_ASSERT_OK(
      spec.reward.Set("reward", LeafSpec::Unbounded(DType::kFloat64, {1})));
  EXPECT_THAT(StepSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("want float32")));
  spec = {.name = "Spec"};
  EXPECT_THAT(StepSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("action: got no leaf")));
}

TEST(EnvSpecTest, LegalActionsNameAMaskOfTheActionsChoices) {
  EnvSpec spec = Observing("x");
  const auto refused = [&spec](LegalActions legal, const char* text) {
    spec.legal_actions = {std::move(legal)};
    EXPECT_THAT(StepSpec(spec), StatusIs(kInvalidArgument, HasSubstr(text)));
  };
  refused({.action = "act"}, "legal_actions[0]: got \"act\"");
  refused({},
          "\"action_mask\": got none, want a leaf of the observation, "
          "bool[2]");
  refused({.mask = "x"}, "\"x\": got float32[2], want");
  RILL_ASSERT_OK(spec.observation.Set("action_mask", LeafSpec::Binary({2})));
  spec.legal_actions = {LegalActions{}};
  RILL_EXPECT_OK(StepSpec(spec));
  spec.legal_actions.push_back({});
  EXPECT_THAT(StepSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("\"action\" again")));
  RILL_ASSERT_OK(spec.action.Set("action", LeafSpec::Binary({2})));
  refused({}, "want choices");
}

TEST(CheckActionsTest, NamesTheLane) {
  EnvSpec spec = Observing("x");
  spec.lanes = 3;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step, MakeStep(spec));
  RILL_EXPECT_OK(CheckActions("T", spec, step));
  step.Find("action")->data<int64_t>()[1] = 2;
  EXPECT_THAT(CheckActions("T", spec, step),
              StatusIs(kInvalidArgument,
                       ::testing::AllOf(HasSubstr("lane 1"), HasSubstr("2"))));
}

TEST(StepSpecTest, ObservationsMayBeNested) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec spec,
                            StepSpec(Observing("camera/left")));
  EXPECT_NE(spec.Find("next/camera/left"), nullptr);
}

TEST(StepSpecTest, RefusesObservationsWithReservedNames) {
  for (const char* key :
       {"next/x", "action", "reward", "done", "truncated/x"}) {
    EXPECT_THAT(StepSpec(Observing(key)),
                StatusIs(kInvalidArgument, HasSubstr(key)));
  }
}

TEST(MakeStepTest, MakesZeroedLeaves) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, MakeStep(env->spec()));
  EXPECT_EQ(step.batch_shape(), Shape({2}));
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(0, 0)));
}

TEST(MakeStepTest, RefusesAnEnvWithoutLanes) {
  EnvSpec spec = Observing("x");
  spec.lanes = 0;
  EXPECT_THAT(MakeStep(spec),
              StatusIs(kInvalidArgument, HasSubstr("got 0, want >= 1")));
}

// The names and places of TorchRL's step_mdp.
TEST(StepMdpTest, T11_CarriesWhatStandsOnBothSides) {
  TensorDict step({2});
  const auto set = [&step](const char* key, float a, float b) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor t, Tensor::From<float>({a, b}, {2, 1}));
    RILL_ASSERT_OK(step.Set(key, std::move(t)));
  };
  set("observation", 1, 2);
  set("deep/inside", 3, 4);
  set("action", 5, 6);
  set("kept", 7, 8);
  set("reward", 0, 0);
  set("done", 0, 0);
  set("next/done", 1, 0);
  set("next/observation", 10, 20);
  set("next/deep/inside", 30, 40);
  set("next/reward", 50, 60);
  set("next/new", 70, 80);
  RILL_ASSERT_OK(StepMdp(&step));
  EXPECT_THAT(*step.Find("observation"), TensorElementsAre<float>(10, 20));
  EXPECT_THAT(*step.Find("deep/inside"), TensorElementsAre<float>(30, 40));
  EXPECT_THAT(*step.Find("done"), TensorElementsAre<float>(1, 0));
  EXPECT_THAT(*step.Find("action"), TensorElementsAre<float>(5, 6));
  EXPECT_THAT(*step.Find("kept"), TensorElementsAre<float>(7, 8));
  EXPECT_THAT(*step.Find("reward"), TensorElementsAre<float>(0, 0));
  EXPECT_THAT(*step.Find("next/observation"), TensorElementsAre<float>(10, 20));
  EXPECT_EQ(step.Find("new"), nullptr);
}

TEST(StepMdpTest, TakesStridedLeaves) {
  TensorDict step({2});
  RILL_ASSERT_OK_AND_ASSIGN(Tensor wide,
                            Tensor::From<float>({1, 2, 3, 4}, {2, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor left, wide.Slice(1, 0, 1));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor right, wide.Slice(1, 1, 2));
  RILL_ASSERT_OK(step.Set("x", std::move(left)));
  RILL_ASSERT_OK(step.Set("next/x", std::move(right)));
  RILL_ASSERT_OK(StepMdp(&step));
  EXPECT_THAT(wide, TensorElementsAre<float>(2, 2, 4, 4));
}

TEST(StepMdpTest, RefusesSidesThatDiffer) {
  TensorDict step({2});
  RILL_ASSERT_OK_AND_ASSIGN(Tensor x, Tensor::Zeros(DType::kFloat32, {2, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor y, Tensor::Zeros(DType::kFloat64, {2, 1}));
  RILL_ASSERT_OK(step.Set("x", std::move(x)));
  RILL_ASSERT_OK(step.Set("next/x", std::move(y)));
  EXPECT_THAT(StepMdp(&step),
              StatusIs(kInvalidArgument,
                       HasSubstr("\"next/x\": got float64[2, 1], want that of "
                                 "\"x\": float32[2, 1]")));
}

TEST(StepMdpTest, RefusesAStepWithoutNext) {
  TensorDict step({2});
  EXPECT_THAT(StepMdp(&step),
              StatusIs(kInvalidArgument, HasSubstr("\"next\" is missing")));
}

}  // namespace
}  // namespace rill
