// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/compose.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

template <typename... Each>
std::unique_ptr<Compose> ComposeOf(Each... each) {
  Transforms transforms;
  (transforms.push_back(std::move(each)), ...);
  return *Compose::Create(std::move(transforms));
}

// Appends its name to `calls`; fails where `fails`.
std::unique_ptr<BatchTransform> Recorder(std::string name,
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
                                     .is_stateful = true});
}

TransformUnderTest UnderTest() {
  return {.make =
              [] {
                return ComposeOf(*RewardScaling::Create({.scale = 0.5}),
                                 MakeFakeRowCounter());
              },
          .batch_spec = TedSpec()};
}

TransformUnderTest Nested() {
  return {.make =
              [] {
                return ComposeOf(ComposeOf(MakeFakeRowCounter()),
                                 *RewardScaling::Create({.scale = 0.5}),
                                 ComposeOf());
              },
          .batch_spec = TedSpec()};
}

TEST(ComposeTest, Example) {
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(),
                            RewardScaling::Create({.scale = 0.1}));
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(),
                            NextStateReconstructor::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto both, Compose::Create(std::move(transforms)));
  EXPECT_EQ(both->transforms().size(), 2u);
}

TensorDict StateOf(const BatchTransform& transform) {
  return *transform.InitialState();
}

TEST(ComposeTest, InverseRunsInReverse) {
  std::vector<std::string> calls;
  auto compose = ComposeOf(Recorder("a", &calls), Recorder("b", &calls));
  TensorDict batch({1});
  TensorDict state;
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  RILL_ASSERT_OK(compose->Inverse(&batch, &state));
  EXPECT_THAT(calls,
              ElementsAre("a.forward", "b.forward", "b.inverse", "a.inverse"));
}

TEST(ComposeTest, LaterTransformsSeeWhatEarlierOnesMade) {
  auto compose = ComposeOf(*RewardScaling::Create({.scale = 10}),
                           *RewardScaling::Create({.loc = 3}));
  TensorDict batch({1});
  TensorDict state;
  RILL_ASSERT_OK(batch.Set("next/reward", *Tensor::From<float>({2}, {1, 1})));
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("next/reward"), IsOkAndHolds(ElementsAre(23)));
}

TEST(ComposeTest, ErrorNamesTheTransformAndStopsThere) {
  std::vector<std::string> calls;
  auto compose = ComposeOf(Recorder("a", &calls), Recorder("b", &calls, true),
                           Recorder("c", &calls));
  TensorDict batch({1});
  TensorDict state;
  EXPECT_THAT(compose->Forward(&batch, &state),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("broken"),
                             HasSubstr("in transform 1 (b) of Compose"))));
  EXPECT_THAT(calls, ElementsAre("a.forward", "b.forward"));
}

TEST(ComposeTest, IsStatefulWhereOneOfItsTransformsIs) {
  EXPECT_FALSE(ComposeOf()->is_stateful());
  EXPECT_FALSE(ComposeOf(*RewardScaling::Create({}))->is_stateful());
  EXPECT_TRUE(ComposeOf(*RewardScaling::Create({}), MakeFakeRowCounter())
                  ->is_stateful());
}

TEST(ComposeTest, StateHoldsThoseThatHaveOneUnderTheirPlaces) {
  auto compose = ComposeOf(*RewardScaling::Create({.scale = 2}),
                           MakeFakeRowCounter(), MakeFakeRowCounter());
  EXPECT_THAT(StateOf(*compose).LeafKeys(), ElementsAre("1/rows", "2/rows"));
}

TEST(ComposeTest, EachTransformHasAStateOfItsOwn) {
  auto compose =
      ComposeOf(MakeFakeRowCounter(), *RewardScaling::Create({.scale = 2}));
  TensorDict state = StateOf(*compose);
  TensorDict batch({5});
  RILL_ASSERT_OK(
      batch.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {5, 1})));
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  EXPECT_THAT(state.Flat<int64_t>("0/rows"), IsOkAndHolds(ElementsAre(5)));
}

TEST(ComposeTest, NullIsRefusedNamingItsPlace) {
  Transforms transforms;
  transforms.push_back(MakeFakeRowCounter());
  transforms.push_back(nullptr);
  EXPECT_THAT(Compose::Create(std::move(transforms)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("transform 1: got null")));
}

TEST(ComposeTest, ANewDictionaryIsWhereAndWhatTheBatchWas) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto rebuild, FunctionTransform::Create(
                        {.forward = [](TensorDict* batch) -> absl::Status {
                          TensorDict made(batch->batch_shape());
                          RILL_RETURN_IF_ERROR(made.Set(
                              "next/reward", *batch->Get("next/reward")));
                          *batch = std::move(made);
                          return absl::OkStatus();
                        }}));
  auto compose = ComposeOf(std::move(rebuild));
  TensorDict batch({5});
  RILL_ASSERT_OK(
      batch.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {5, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
  RILL_ASSERT_OK(batch.SetDimNames({"time"}));
  TensorDict state;
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  EXPECT_EQ(batch.device(), Device::Cpu());
  EXPECT_THAT(batch.dim_names(), ElementsAre("time"));
}

// Fails where a batch has no "wanted", or a reward of 8.
std::unique_ptr<BatchTransform> Picky() {
  return *FunctionTransform::Create(
      {.name = "Picky", .forward = [](TensorDict* batch) -> absl::Status {
         if (!batch->Contains("wanted")) return absl::NotFoundError("wanted");
         RILL_ASSIGN_OR_RETURN(const auto rewards,
                               batch->Flat<float>("next/reward"));
         return rewards[0] == 8 ? absl::InternalError("8") : absl::OkStatus();
       }});
}

TensorDict RewardOf(float reward, int64_t rows = 1) {
  TensorDict batch({rows});
  RILL_EXPECT_OK(batch.Set(
      "next/reward",
      *Tensor::From<float>(std::vector<float>(rows, reward), {rows, 1})));
  return batch;
}

TensorDict Wanted(float reward, int64_t rows = 1) {
  TensorDict batch = RewardOf(reward, rows);
  RILL_EXPECT_OK(batch.Set("wanted", NonTensor{"1"}));
  return batch;
}

TEST(ComposeTest, ABatchOfAnotherLayoutIsUnchangedByAnError) {
  const auto compose = ComposeOf(MakeFakeRowCounter(),
                                 *RewardScaling::Create({.scale = 2}), Picky());
  TensorDict state = *compose->InitialState();
  TensorDict first = Wanted(1);
  RILL_ASSERT_OK(compose->Forward(&first, &state));
  // An entry that is no tensor is missing; another number of rows.
  for (TensorDict batch : {RewardOf(1), RewardOf(1, 2), Wanted(4, 3)}) {
    const Tensor reward = *batch.Find("next/reward");
    const TensorDict before = *batch.Clone();
    const TensorDict state_before = state;
    EXPECT_FALSE(compose->Forward(&batch, &state).ok());
    RILL_EXPECT_OK(batch.CheckEqual(before));
    // So do others see it that hold its tensors.
    EXPECT_EQ(batch.Find("next/reward")->raw_data(), reward.raw_data());
    RILL_EXPECT_OK(state.CheckEqual(state_before));
  }
}

TEST(ComposeTest, ALockedBatchIsUnchangedByAnError) {
  const auto compose = ComposeOf(*RewardScaling::Create({.scale = 2}), Picky());
  TensorDict state;
  TensorDict batch = Wanted(4);
  batch.Lock();
  EXPECT_FALSE(compose->Forward(&batch, &state).ok());
  EXPECT_TRUE(batch.is_locked());
  EXPECT_EQ(batch.Find("next/reward")->data<float>()[0], 4);
}

TEST(ComposeTest, AnErrorOfValuesLeavesTheState) {
  const auto compose = ComposeOf(MakeFakeRowCounter(),
                                 *RewardScaling::Create({.scale = 2}), Picky());
  TensorDict state = *compose->InitialState();
  TensorDict batch = Wanted(1);
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  const TensorDict state_before = state;
  batch = Wanted(4);
  EXPECT_FALSE(compose->Forward(&batch, &state).ok());
  RILL_EXPECT_OK(state.CheckEqual(state_before));
}

TEST(ComposeTest, TheFirstBatchKeepsItsTensors) {
  const auto compose = ComposeOf(*RewardScaling::Create({.scale = 2}), Picky());
  TensorDict state;
  TensorDict batch = Wanted(1);
  const Tensor reward = *batch.Find("next/reward");
  RILL_ASSERT_OK(compose->Forward(&batch, &state));
  EXPECT_EQ(reward.data<float>()[0], 2);
  EXPECT_EQ(batch.Find("next/reward")->raw_data(), reward.raw_data());
}

TEST(ComposeTest, SpecErrorsNameTheTransform) {
  auto compose = ComposeOf(MakeFakeRowCounter(), *RewardScaling::Create({}));
  EXPECT_THAT(compose->ForwardSpec(TensorDictSpec()),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("transform 1 (RewardScaling)")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Compose, UnderTest());
INSTANTIATE_TRANSFORM_CONFORMANCE(Nested, Nested());
INSTANTIATE_TRANSFORM_CONFORMANCE(Empty, {.make = [] { return ComposeOf(); },
                                          .batch_spec = TedSpec()});

}  // namespace rill
