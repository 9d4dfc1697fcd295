// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/function_transform.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

constexpr char kNext[] = "next/observation";

absl::Status DropNextObservation(TensorDict* batch) {
  const absl::Status found = batch->Get(kNext).status();
  return found.ok() ? batch->Delete(kNext) : found;
}

absl::StatusOr<TensorDictSpec> WithoutNextObservation(
    const TensorDictSpec& spec) {
  if (spec.Find(kNext) == nullptr) return absl::NotFoundError(kNext);
  TensorDictSpec after = spec;
  after.Erase(kNext);
  return after;
}

TransformUnderTest UnderTest() {
  return {.make =
              [] {
                return *FunctionTransform::Create(
                    {.name = "DropNextObservation",
                     .forward = DropNextObservation,
                     .inverse = DropNextObservation,
                     .forward_spec = WithoutNextObservation,
                     .inverse_spec = WithoutNextObservation});
              },
          .batch_spec = TedSpec()};
}

TEST(FunctionTransformTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto binarize,
      FunctionTransform::Create({.forward = [](TensorDict* batch) {
        auto rewards = batch->Flat<float>("next/reward");
        if (!rewards.ok()) return rewards.status();
        for (float& reward : *rewards) reward = reward > 0 ? 1.0f : 0.0f;
        return absl::OkStatus();
      }}));
  TensorDict batch({3});
  RILL_ASSERT_OK(
      batch.Set("next/reward", *Tensor::From<float>({-1, 0, 2}, {3, 1})));
  RILL_ASSERT_OK(binarize->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(0, 0, 1)));
}

TEST(FunctionTransformTest, CallsTheFunctionOfEachSideAndNothingElse) {
  int forwards = 0;
  int inverses = 0;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto transform, FunctionTransform::Create({.forward =
                                                     [&](TensorDict*) {
                                                       ++forwards;
                                                       return absl::OkStatus();
                                                     },
                                                 .inverse =
                                                     [&](TensorDict*) {
                                                       ++inverses;
                                                       return absl::OkStatus();
                                                     }}));
  TensorDict batch({1});
  RILL_EXPECT_OK(transform->Forward(&batch, nullptr));
  RILL_EXPECT_OK(transform->Forward(&batch, nullptr));
  RILL_EXPECT_OK(transform->Inverse(&batch, nullptr));
  EXPECT_EQ(forwards, 2);
  EXPECT_EQ(inverses, 1);
}

TEST(FunctionTransformTest, PassesTheFunctionsErrorOn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto transform, FunctionTransform::Create({.inverse = [](TensorDict*) {
        return absl::OutOfRangeError("too hot");
      }}));
  TensorDict batch({1});
  EXPECT_THAT(transform->Inverse(&batch, nullptr),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("too hot; in FunctionTransform")));
}

TEST(FunctionTransformTest, SpecWithoutAFunctionStays) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto transform, FunctionTransform::Create({.forward = [](TensorDict*) {
        return absl::OkStatus();
      }}));
  EXPECT_THAT(transform->ForwardSpec(TedSpec()), IsOkAndHolds(TedSpec()));
}

TEST(FunctionTransformTest, FunctionsThatRememberSaySo) {
  const auto nothing = [](TensorDict*) { return absl::OkStatus(); };
  EXPECT_FALSE(
      (*FunctionTransform::Create({.forward = nothing}))->is_stateful());
  EXPECT_TRUE(
      (*FunctionTransform::Create({.forward = nothing, .is_stateful = true}))
          ->is_stateful());
}

TEST(FunctionTransformTest, OptionsThatMakeNoSenseAreNamed) {
  EXPECT_THAT(FunctionTransform::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("forward, inverse")));
  EXPECT_THAT(
      FunctionTransform::Create({.name = "", .forward = DropNextObservation}),
      StatusIs(kInvalidArgument, HasSubstr("name")));
  EXPECT_THAT(
      FunctionTransform::Create({.forward = DropNextObservation,
                                 .inverse_spec = WithoutNextObservation}),
      StatusIs(kInvalidArgument, HasSubstr("inverse_spec")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Function, UnderTest());

}  // namespace rill
