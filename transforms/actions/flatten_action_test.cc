// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/flatten_action.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec SpecWith(const LeafSpec& action) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  return spec;
}

LeafSpec Grid(const Shape& shape) {
  return LeafSpec::Bounded(DType::kFloat32, shape, -1, 1);
}

// The shape of rows after a read.
Shape Flat(const FlattenAction::Options& options, const Shape& shape) {
  auto flatten = FlattenAction::Create(options);
  RILL_EXPECT_OK(flatten);
  auto spec = (*flatten)->ForwardSpec(SpecWith(Grid(shape)));
  RILL_EXPECT_OK(spec);
  return spec->Find("action")->shape;
}

TEST(FlattenActionTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten, FlattenAction::Create({}));
  EXPECT_EQ(flatten->name(), "FlattenAction");
}

TEST(FlattenActionTest, JoinsTheDimensionsThatItIsTold) {
  EXPECT_EQ(Flat({}, {2, 3, 4}), Shape({2, 12}));
  EXPECT_EQ(Flat({.first_dim = -3}, {2, 3, 4}), Shape({24}));
  EXPECT_EQ(Flat({.first_dim = 0, .last_dim = 1}, {2, 3, 4}), Shape({6, 4}));
  EXPECT_EQ(Flat({.first_dim = 1, .last_dim = -1}, {2, 3, 4}), Shape({2, 12}));
  EXPECT_EQ(Flat({.first_dim = -1}, {3}), Shape({3}));
}

TEST(FlattenActionTest, AnEnvironmentGetsItsShapeBack) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten, FlattenAction::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto environment,
      FakeEnvironment::Create(SpecWith(Grid({2, 3})), 2, flatten.get()));
  EXPECT_EQ(*environment.plan().spec.Find("action"), Grid({6}));
  RILL_ASSERT_OK(environment.Reset({1, 1}));
  RILL_ASSERT_OK(environment.Step());
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor chosen,
      environment.step().Find("action")->Reshape({2, 2, 3}));
  EXPECT_THAT(chosen.BitEquals(*environment.environment_step().Find("action")),
              IsOkAndHolds(true));
}

TEST(FlattenActionTest, WritesGiveTheShapeBackWhereItIsGiven) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten,
                            FlattenAction::Create({.action_shape = {2, 3}}));
  TensorDict batch({4});
  RILL_ASSERT_OK(
      batch.Set("action", *Tensor::Zeros(DType::kFloat32, {4, 5, 6})));
  RILL_ASSERT_OK(flatten->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->shape(), Shape({4, 5, 2, 3}));
  RILL_ASSERT_OK(flatten->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->shape(), Shape({4, 5, 6}));

  RILL_ASSERT_OK_AND_ASSIGN(auto reads, FlattenAction::Create({}));
  RILL_ASSERT_OK(reads->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->shape(), Shape({4, 5, 6}));
}

TEST(FlattenActionTest, BadOptionsAreNamed) {
  EXPECT_THAT(FlattenAction::Create({.first_dim = -1, .last_dim = -2}),
              StatusIs(kInvalidArgument, HasSubstr("first_dim")));
  EXPECT_THAT(FlattenAction::Create({.action_shape = {-1}}),
              StatusIs(kInvalidArgument, HasSubstr("action_shape")));
  EXPECT_THAT(FlattenAction::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

TEST(FlattenActionTest, ActionsWithoutTheseDimensionsAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto flatten,
                            FlattenAction::Create({.action_shape = {2, 3}}));
  for (const LeafSpec& bad : {Grid({3}), LeafSpec::Categorical(3)}) {
    EXPECT_THAT(flatten->PlanSteps(SpecWith(bad)).status(),
                StatusIs(kInvalidArgument, AllOf(HasSubstr("\"action\""),
                                                 HasSubstr("first_dim = -2"))));
    EXPECT_THAT(flatten->ForwardSpec(SpecWith(bad)).status(),
                StatusIs(kInvalidArgument));
  }
  EXPECT_THAT(flatten->InverseSpec(SpecWith(Grid({7}))).status(),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(flatten->InverseSpec(SpecWith(Grid({}))).status(),
              StatusIs(kInvalidArgument));
  RILL_ASSERT_OK_AND_ASSIGN(auto longer,
                            FlattenAction::Create({.action_shape = {2, 3, 1}}));
  EXPECT_THAT(longer->InverseSpec(SpecWith(Grid({6}))).status(),
              StatusIs(kInvalidArgument, HasSubstr("action_shape")));
  // The options of a one-hot row are no dimension to join.
  EXPECT_THAT(
      flatten->PlanSteps(SpecWith(LeafSpec::OneHot(3, DType::kBool, {2})))
          .status(),
      StatusIs(kInvalidArgument));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    FlattenReads, InABuffer<FlattenAction>({}, SpecWith(Grid({2, 3}))));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    FlattenBothWays,
    InABuffer<FlattenAction>({.action_shape = {3, 2}}, SpecWith(Grid({2, 6}))));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    FlattenAndBack,
    {.make =
         [] {
           return *FlattenAction::Create({.action_shape = {2, 3}});
         },
     .batch_spec = SpecWith(Grid({2, 3})),
     .inverse_tolerance = 0,
     .inverts_results = true});
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Flatten, BesideAnEnvironment<FlattenAction>({}, SpecWith(Grid({2, 3}))));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    FlattenIndices,
    BesideAnEnvironment<FlattenAction>(
        {}, SpecWith(LeafSpec::Categorical(4, DType::kInt64, {2, 3}))));

}  // namespace rill
