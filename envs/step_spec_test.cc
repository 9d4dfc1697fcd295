// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/step_spec.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/spec_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec OneLeaf(const std::string& key) {
  TensorDictSpec spec;
  EXPECT_TRUE(spec.Set(key, LeafSpec::Unbounded(DType::kFloat32, {2})).ok());
  return spec;
}

TEST(StepSpecTest, HoldsRootActionAndNext) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec spec, StepSpec(*env));
  EXPECT_EQ(*spec.Find("action"), LeafSpec::Categorical(3));
  EXPECT_EQ(*spec.Find("next/truncated"), LeafSpec::Binary({1}));
  EXPECT_EQ(*spec.Find("next/reward"),
            LeafSpec::Unbounded(DType::kFloat32, {1}));
  EXPECT_EQ(spec.Find("reward"), nullptr);
  EXPECT_EQ(spec.leaves().size(), 10);
}

TEST(StepSpecTest, ObservationsMayBeNested) {
  SpecEnv env(1, OneLeaf("camera/left"), LeafSpec::Categorical(2));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec spec, StepSpec(env));
  EXPECT_NE(spec.Find("next/camera/left"), nullptr);
}

TEST(StepSpecTest, RefusesObservationsWithReservedNames) {
  for (const char* key :
       {"next/x", "action", "reward", "done", "truncated/x"}) {
    SpecEnv env(1, OneLeaf(key), LeafSpec::Categorical(2));
    EXPECT_THAT(StepSpec(env), StatusIs(kInvalidArgument, HasSubstr(key)));
  }
}

TEST(MakeStepTest, MakesZeroedLeaves) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, MakeStep(*env));
  EXPECT_EQ(step.batch_shape(), Shape({2}));
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(0, 0)));
}

TEST(MakeStepTest, RefusesAnEnvWithoutLanes) {
  SpecEnv env(0, OneLeaf("x"), LeafSpec::Categorical(2));
  EXPECT_THAT(MakeStep(env),
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
