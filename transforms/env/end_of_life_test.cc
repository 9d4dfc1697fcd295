// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/end_of_life.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorDictSpec SpecWithLives(DType dtype, const Shape& shape) {
  TensorDictSpec spec = TedSpec();
  for (const char* key : {"lives", "next/lives"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Bounded(dtype, shape, 0, 5)));
  }
  return spec;
}

TEST(EndOfLifeTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto end_of_life,
                            EndOfLife::Create({.lives_key = "ram/lives"}));
  EXPECT_EQ(end_of_life->name(), "EndOfLife");
}

TEST(EndOfLifeTest, FewerLivesOrDoneEndALife) {
  const TensorDictSpec spec = SpecWithLives(DType::kInt64, {1});
  RILL_ASSERT_OK_AND_ASSIGN(auto end_of_life, EndOfLife::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment, FakeEnvironment::Create(spec, 4, end_of_life.get()));
  RILL_ASSERT_OK(environment.Reset({1, 1, 1, 1}));
  TensorDict made({4});
  RILL_ASSERT_OK(
      made.Set("next/lives", *Tensor::From<int64_t>({3, 3, 3, 3}, {4, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(environment.step().Flat<bool>("end-of-life"),
              IsOkAndHolds(ElementsAre(false, false, false, false)));
  RILL_ASSERT_OK(
      made.Set("next/lives", *Tensor::From<int64_t>({3, 2, 4, 3}, {4, 1})));
  RILL_ASSERT_OK(made.Set(
      "next/done", *Tensor::From<bool>({false, false, false, true}, {4, 1})));
  RILL_ASSERT_OK(environment.Step(made));
  EXPECT_THAT(environment.step().Flat<bool>("next/end-of-life"),
              IsOkAndHolds(ElementsAre(false, true, false, true)));
  EXPECT_THAT(environment.step().Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, false, false, true)));
  RILL_ASSERT_OK(environment.Reset({0, 0, 0, 1}));
  EXPECT_THAT(environment.step().Flat<bool>("end-of-life"),
              IsOkAndHolds(ElementsAre(false, true, false, false)));
}

TEST(EndOfLifeTest, LivesThatAreNoCountAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto end_of_life, EndOfLife::Create({}));
  EXPECT_THAT(end_of_life->PlanSteps(TedSpec()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("EndOfLife")));
  TensorDictSpec spec = SpecWithLives(DType::kInt64, {1});
  for (const LeafSpec& bad : {LeafSpec::Unbounded(DType::kFloat32, {1}),
                              LeafSpec::Unbounded(DType::kUInt64, {1}),
                              LeafSpec::Unbounded(DType::kInt64, {2})}) {
    RILL_ASSERT_OK(spec.Set("next/lives", bad));
    EXPECT_THAT(end_of_life->PlanSteps(spec).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("next/lives"), HasSubstr("got"))));
  }
}

TEST(EndOfLifeTest, AKeyThatTheStepsHaveIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto end_of_life,
                            EndOfLife::Create({.eol_key = "observation"}));
  EXPECT_THAT(
      end_of_life->PlanSteps(SpecWithLives(DType::kInt64, {1})).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("\"observation\"")));
}

TEST(EndOfLifeTest, BadKeysAreNamed) {
  EXPECT_THAT(
      EndOfLife::Create({.eol_key = "/"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("eol_key")));
}

}  // namespace

INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    EndOfLife,
    BesideAnEnvironment<EndOfLife>({}, SpecWithLives(DType::kInt64, {1})));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    EndOfLifeOfScalars,
    BesideAnEnvironment<EndOfLife>({}, SpecWithLives(DType::kUInt8, {})));

}  // namespace rill
