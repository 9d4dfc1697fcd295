// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/compose.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Transforms = std::vector<std::unique_ptr<Transform>>;

template <typename... Each>
std::unique_ptr<Compose> ComposeOf(Each... each) {
  Transforms transforms;
  (transforms.push_back(std::move(each)), ...);
  return *Compose::Create(std::move(transforms));
}

// Appends its name to `calls`; fails where `fails`.
std::unique_ptr<Transform> Recorder(std::string name,
                                    std::vector<std::string>* calls,
                                    bool fails = false) {
  auto record = [=](std::string side) {
    return [=](TensorDict*) {
      calls->push_back(name + "." + side);
      return fails ? absl::InternalError("broken") : absl::OkStatus();
    };
  };
  return *FunctionTransform::Create({.name = name,
                                     .forward = record("forward"),
                                     .inverse = record("inverse"),
                                     .on_step = record("step")});
}

TransformUnderTest UnderTest() {
  return {.make =
              [] {
                return ComposeOf(*RewardScaling::Create({.scale = 0.5}),
                                 *StepCounter::Create({.max_steps = 3}),
                                 MakeFakeRowCounter(), *RewardSum::Create({}));
              },
          .batch_spec = TedSpec(),
          .step_spec = TedSpec()};
}

TransformUnderTest Nested() {
  return {.make =
              [] {
                return ComposeOf(ComposeOf(MakeFakeRowCounter()),
                                 *RewardScaling::Create({.scale = 0.5}),
                                 ComposeOf());
              },
          .batch_spec = TedSpec(),
          .step_spec = TedSpec()};
}

TEST(ComposeTest, Example) {
  std::vector<std::unique_ptr<Transform>> transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(), StepCounter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(), RewardSum::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto both, Compose::Create(std::move(transforms)));
  EXPECT_EQ(both->transforms().size(), 2u);
}

TEST(ComposeTest, InverseRunsInReverse) {
  std::vector<std::string> calls;
  auto compose = ComposeOf(Recorder("a", &calls), Recorder("b", &calls));
  TensorDict batch({1});
  RILL_ASSERT_OK(compose->Forward(&batch));
  RILL_ASSERT_OK(compose->Inverse(&batch));
  RILL_ASSERT_OK(compose->OnStep(&batch));
  EXPECT_THAT(calls, ElementsAre("a.forward", "b.forward", "b.inverse",
                                 "a.inverse", "a.step", "b.step"));
}

TEST(ComposeTest, LaterTransformsSeeWhatEarlierOnesMade) {
  auto compose =
      ComposeOf(*RewardScaling::Create({.scale = 10}), *RewardSum::Create({}));
  TensorDict step({1});
  RILL_ASSERT_OK(compose->OnReset({1}, &step));
  RILL_ASSERT_OK(step.Set("next/reward", *Tensor::From<float>({2}, {1, 1})));
  RILL_ASSERT_OK(compose->OnStep(&step));
  EXPECT_THAT(step.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(20)));
}

TEST(ComposeTest, ErrorNamesTheTransformAndStopsThere) {
  std::vector<std::string> calls;
  auto compose = ComposeOf(Recorder("a", &calls), Recorder("b", &calls, true),
                           Recorder("c", &calls));
  TensorDict batch({1});
  EXPECT_THAT(compose->Forward(&batch),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("broken"),
                             HasSubstr("in transform 1 (b) of Compose"))));
  EXPECT_THAT(calls, ElementsAre("a.forward", "b.forward"));
}

TEST(ComposeTest, ErrorGivesEarlierTransformsTheirStateBack) {
  std::vector<std::string> calls;
  auto compose = ComposeOf(MakeFakeRowCounter(), Recorder("b", &calls, true));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, compose->SaveState());
  TensorDict batch({5});
  EXPECT_FALSE(compose->Forward(&batch).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, compose->SaveState());
  RILL_EXPECT_OK(after.CheckEqual(before));
}

TEST(ComposeTest, StateHoldsThoseThatHaveOneUnderTheirPlaces) {
  auto compose = ComposeOf(*RewardScaling::Create({.scale = 2}),
                           MakeFakeRowCounter(), MakeFakeRowCounter());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, compose->SaveState());
  EXPECT_THAT(state.LeafKeys(), ElementsAre("1/rows", "2/rows"));
}

TEST(ComposeTest, StateOfAnotherPipelineIsRefusedAndChangesNothing) {
  auto compose =
      ComposeOf(MakeFakeRowCounter(), *RewardScaling::Create({.scale = 2}));
  TensorDict batch({5});
  RILL_ASSERT_OK(
      batch.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {5, 1})));
  RILL_ASSERT_OK(compose->Forward(&batch));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, compose->SaveState());
  // Transform 0 takes its part; 1 has no state, and refuses.
  TensorDict other;
  const Tensor number = *Tensor::Zeros(DType::kInt64, {});
  RILL_ASSERT_OK(other.Set("0/rows", number));
  RILL_ASSERT_OK(other.Set("1/rows", number));
  EXPECT_THAT(compose->LoadState(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("transform 1 (RewardScaling)")));
  RILL_ASSERT_OK(other.Delete("1"));
  RILL_ASSERT_OK(other.Set("2/rows", number));
  EXPECT_THAT(compose->LoadState(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("transforms 0 to 1")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, compose->SaveState());
  RILL_EXPECT_OK(after.CheckEqual(before));
}

TEST(ComposeTest, NullIsRefusedNamingItsPlace) {
  Transforms transforms;
  transforms.push_back(MakeFakeRowCounter());
  transforms.push_back(nullptr);
  EXPECT_THAT(Compose::Create(std::move(transforms)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("transform 1: got null")));
}

TEST(ComposeTest, SpecErrorsNameTheTransform) {
  auto compose = ComposeOf(MakeFakeRowCounter(), *RewardSum::Create({}));
  EXPECT_THAT(compose->StepSpec(TensorDictSpec()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("transform 1 (RewardSum)")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Compose, UnderTest());
INSTANTIATE_TRANSFORM_CONFORMANCE(Nested, Nested());
INSTANTIATE_TRANSFORM_CONFORMANCE(Empty, {.make = [] { return ComposeOf(); },
                                          .batch_spec = TedSpec(),
                                          .step_spec = TedSpec()});

}  // namespace rill
