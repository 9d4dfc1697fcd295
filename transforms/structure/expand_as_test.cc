// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/expand_as.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Observations of three agents, [1, 3, 2].
TensorDictSpec Agents() {
  TensorDictSpec spec = TedSpec();
  const LeafSpec agents = LeafSpec::Unbounded(DType::kFloat32, {1, 3, 2});
  RILL_EXPECT_OK(spec.Set("observation", agents));
  RILL_EXPECT_OK(spec.Set("next/observation", agents));
  return spec;
}

const ExpandAs::Options kDone = {
    .in_key = "done", .ref_key = "observation", .out_key = "agents_done"};

const ExpandAs::Options kReward = {
    .in_key = "reward", .ref_key = "observation", .out_key = "agents_reward"};

TensorDict BatchOf(const Tensor& value, const Shape& ref) {
  TensorDict batch({value.shape()[0]});
  RILL_EXPECT_OK(batch.Set("value", value));
  RILL_EXPECT_OK(batch.Set("ref", *Tensor::Zeros(DType::kBool, ref)));
  return batch;
}

TEST(ExpandAsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto expand,
                            ExpandAs::Create({.in_key = "next/done",
                                              .ref_key = "next/observation",
                                              .out_key = "next/agents_done"}));
  EXPECT_EQ(expand->name(), "ExpandAs");
}

TEST(ExpandAsTest, SizesOfOneAndNewLastDimensionsRepeat) {
  auto expand = *ExpandAs::Create({.in_key = "value", .ref_key = "ref"});
  TensorDict batch =
      BatchOf(*Tensor::From<int16_t>({1, 2, 3, 4}, {2, 1, 2}), {2, 2, 2, 2});
  RILL_ASSERT_OK(expand->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("value")->shape(), Shape({2, 2, 2, 2}));
  EXPECT_THAT(batch.Flat<int16_t>("value"),
              IsOkAndHolds(ElementsAre(1, 1, 2, 2, 1, 1, 2, 2,  //
                                       3, 3, 4, 4, 3, 3, 4, 4)));
}

TEST(ExpandAsTest, ADictionaryIsNotReplaced) {
  auto expand = *ExpandAs::Create(
      {.in_key = "value", .ref_key = "ref", .out_key = "info"});
  TensorDict batch = BatchOf(*Tensor::Zeros(DType::kFloat32, {2, 1}), {2, 3});
  RILL_ASSERT_OK(batch.Set("info/a", *Tensor::Zeros(DType::kFloat32, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, batch.Clone());
  EXPECT_THAT(
      expand->Forward(&batch, nullptr),
      StatusIs(kInvalidArgument, HasSubstr("\"info\": got a dictionary")));
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

TEST(ExpandAsTest, ShapesThatDoNotFitAreNamed) {
  auto expand = *ExpandAs::Create({.in_key = "value", .ref_key = "ref"});
  for (const Shape& ref : {Shape({2, 4, 1}), Shape({2, 3})}) {
    TensorDict batch = BatchOf(*Tensor::Zeros(DType::kFloat32, {2, 3, 1}), ref);
    const auto error = StatusIs(
        kInvalidArgument, AllOf(HasSubstr("\"value\""), HasSubstr("[3, 1]"),
                                HasSubstr(ref.Suffix(1).ToString())));
    EXPECT_THAT(expand->ForwardSpec(TensorDictSpec::Of(batch)), error);
    EXPECT_THAT(expand->Forward(&batch, nullptr), error);
  }
}

TEST(ExpandAsTest, BadOptionsAndMissingLeavesAreNamed) {
  EXPECT_THAT(ExpandAs::Create({.ref_key = "a"}),
              StatusIs(kInvalidArgument, HasSubstr("in_key")));
  EXPECT_THAT(ExpandAs::Create({.in_key = "a"}),
              StatusIs(kInvalidArgument, HasSubstr("ref_key")));
  auto expand = *ExpandAs::Create({.in_key = "done", .ref_key = "nothing"});
  EXPECT_THAT(expand->ForwardSpec(TedSpec()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing")));
  TensorDict batch({1});
  EXPECT_THAT(expand->Forward(&batch, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ExpandAs")));
  expand = *ExpandAs::Create({.in_key = "next/done", .ref_key = "observation"});
  EXPECT_THAT(expand->PlanSteps(Agents()).status(),
              StatusIs(kInvalidArgument, HasSubstr("next/done")));
}

TEST(ExpandAsTest, StepsAreExpandedAtTheRootAndBelowNext) {
  auto expand = *ExpandAs::Create(kDone);
  const TensorDictSpec spec = Agents();
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 2, expand.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  TensorDict made({2});
  RILL_ASSERT_OK(
      made.Set("next/done", *Tensor::From<bool>({true, false}, {2, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(
      environment.step().Flat<bool>("next/agents_done"),
      IsOkAndHolds(ElementsAre(true, true, true, true, true, true,  //
                               false, false, false, false, false, false)));
  EXPECT_EQ(*environment.plan().spec.Find("agents_done"),
            LeafSpec::Binary({1, 3, 2}));
}

TEST(ExpandAsTest, ARewardIsExpandedBelowNextAndZeroAfterAReset) {
  auto expand = *ExpandAs::Create(kReward);
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(Agents(), 2, expand.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  TensorDict made({2});
  RILL_ASSERT_OK(made.Set("next/reward", *Tensor::From<float>({2, 3}, {2, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  const auto rewards = ElementsAre(2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3);
  EXPECT_THAT(environment.step().Flat<float>("next/agents_reward"),
              IsOkAndHolds(rewards));
  RILL_ASSERT_OK(environment.Reset({0, 1}));
  EXPECT_THAT(environment.step().Flat<float>("agents_reward"),
              IsOkAndHolds(ElementsAre(2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0)));
  expand = *ExpandAs::Create({.in_key = "reward", .ref_key = "observation"});
  EXPECT_THAT(expand->PlanSteps(Agents()).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"reward\"")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(ExpandAs,
                                  InABuffer<ExpandAs>(kDone, Agents()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(ExpandAs,
                                       BesideAnEnvironment<ExpandAs>(kDone,
                                                                     Agents()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(OfARewardExpandAs,
                                       BesideAnEnvironment<ExpandAs>(kReward,
                                                                     Agents()));

}  // namespace rill
