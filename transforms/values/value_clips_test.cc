// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/value_clips.h"

#include <cstdint>
#include <limits>

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
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename T>
TensorDict Rewards(std::initializer_list<T> values) {
  const auto rows = static_cast<int64_t>(values.size());
  TensorDict batch({rows});
  RILL_EXPECT_OK(batch.Set("next/reward", *Tensor::From<T>(values, {rows, 1})));
  return batch;
}

// The result of Forward, or Inverse, on rewards.
template <typename T>
absl::StatusOr<std::vector<T>> Map(const BatchTransform& transform,
                                   std::initializer_list<T> values,
                                   bool inverse = false) {
  TensorDict batch = Rewards(values);
  const absl::Status status = inverse ? transform.Inverse(&batch, nullptr)
                                      : transform.Forward(&batch, nullptr);
  if (!status.ok()) return status;
  auto flat = batch.Flat<T>("next/reward");
  if (!flat.ok()) return flat.status();
  return std::vector<T>(flat->begin(), flat->end());
}

TensorDictSpec WithVectorAction() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("action", LeafSpec::Bounded(DType::kFloat32, {3}, -2, 2)));
  return spec;
}

const Clip::Options kClip = {.in_keys = {"observation", "next/reward"},
                             .in_keys_inv = {"action"},
                             .low = -0.5,
                             .high = 0.25};
const Sign::Options kSign = {.in_keys = {"observation"},
                             .out_keys = {"sign"},
                             .in_keys_inv = {"action"}};

// --- Clip, RewardClipping ----------------------------------------------------

TEST(ClipTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto clip,
      Clip::Create({.in_keys = {"observation"}, .low = -5, .high = 5}));
  EXPECT_EQ(clip->name(), "Clip");
}

TEST(RewardClippingTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto clipping, RewardClipping::Create({.clamp_min = -1, .clamp_max = 1}));
  EXPECT_EQ(clipping->name(), "RewardClipping");
}

TEST(RewardClippingTest, T7_RewardsAreMovedIntoTheBounds) {
  auto clipping = *RewardClipping::Create({.clamp_min = -1, .clamp_max = 1});
  EXPECT_THAT(Map<float>(*clipping, {-3, 0.5f, 2}),
              IsOkAndHolds(ElementsAre(-1, 0.5f, 1)));
}

TEST(ClipTest, WithoutABoundValuesOfThatSideStay) {
  auto low = *RewardClipping::Create({.clamp_min = -1});
  EXPECT_THAT(Map<float>(*low, {-kInfinity, 3e38f, kInfinity}),
              IsOkAndHolds(ElementsAre(-1, 3e38f, kInfinity)));
  EXPECT_THAT(Map<double>(*low, {-2, 1e300}),
              IsOkAndHolds(ElementsAre(-1, 1e300)));
  EXPECT_THAT(Map<int64_t>(*low, {INT64_MIN, INT64_MAX}),
              IsOkAndHolds(ElementsAre(-1, INT64_MAX)));
  auto high = *Clip::Create({.in_keys = {"next/reward"}, .high = 1.5});
  EXPECT_THAT(Map<float>(*high, {-kInfinity, 2}),
              IsOkAndHolds(ElementsAre(-kInfinity, 1.5f)));
  EXPECT_THAT(Map<uint8_t>(*high, {0, 200}), IsOkAndHolds(ElementsAre(0, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            high->ForwardSpec(TedSpec()));
  EXPECT_EQ(*spec.Find("next/reward"),
            LeafSpec::Bounded(DType::kFloat32, {1}, -2, 1.5));
}

TEST(ClipTest, InverseKeysAreClippedBeforeWrites) {
  auto clip =
      *Clip::Create({.in_keys_inv = {"next/reward"}, .low = 0, .high = 1});
  EXPECT_THAT(Map<float>(*clip, {-3, 2}, /*inverse=*/true),
              IsOkAndHolds(ElementsAre(0, 1)));
  EXPECT_THAT(Map<float>(*clip, {-3, 2}), IsOkAndHolds(ElementsAre(-3, 2)));
}

TEST(ClipTest, ActionsAreClippedOnTheirWayIn) {
  auto clip = *Clip::Create(kClip);
  const TensorDictSpec spec = WithVectorAction();
  RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                            FakeEnvironment::Create(spec, 1, clip.get()));
  RILL_ASSERT_OK(environment.Reset({1}));
  RILL_ASSERT_OK(environment.Step());
  EXPECT_THAT(environment.environment_step().Flat<float>("action"),
              IsOkAndHolds(::testing::Each(
                  AllOf(::testing::Ge(-0.5f), ::testing::Le(0.25f)))));
}

TEST(ClipTest, BadBoundsAreNamed) {
  const auto refused = [](std::optional<double> low, std::optional<double> high,
                          const char* text) {
    EXPECT_THAT(Clip::Create({.in_keys = {"a"}, .low = low, .high = high}),
                StatusIs(kInvalidArgument, HasSubstr(text)));
  };
  refused(std::nullopt, std::nullopt, "low and high: got none");
  refused(1, 0, "got 1 and 0");
  refused(kNaN, 0, "low: got nan");
  refused(0, 1e60, "high: got 1e+60");
  EXPECT_THAT(RewardClipping::Create({.clamp_min = 1, .clamp_max = 0}),
              StatusIs(kInvalidArgument,
                       HasSubstr("clamp_min and clamp_max: got 1 and 0")));
  EXPECT_THAT(
      RewardClipping::Create({}),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("clamp_min and clamp_max"),
                                       HasSubstr("RewardClipping::Create"))));
  EXPECT_THAT(Clip::Create({.low = 0}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

// --- BinarizeReward, Sign ----------------------------------------------------

TEST(BinarizeRewardTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto binarize, BinarizeReward::Create({}));
  EXPECT_EQ(binarize->name(), "BinarizeReward");
}

TEST(BinarizeRewardTest, PositiveRewardsAreOne) {
  auto binarize = *BinarizeReward::Create({});
  EXPECT_THAT(Map<float>(*binarize, {-1, 0, 1e-40f, 3, kNaN}),
              IsOkAndHolds(ElementsAre(0, 0, 1, 1, 0)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec spec,
                            binarize->ForwardSpec(TedSpec()));
  EXPECT_EQ(*spec.Find("next/reward"), LeafSpec::Binary({1}, DType::kFloat32));
}

TEST(SignTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto sign,
                            Sign::Create({.in_keys = {"next/reward"}}));
  EXPECT_EQ(sign->name(), "Sign");
}

TEST(SignTest, IsMinusOneZeroOrOneOnBothSides) {
  auto sign = *Sign::Create(
      {.in_keys = {"next/reward"}, .in_keys_inv = {"next/reward"}});
  for (const bool inverse : {false, true}) {
    EXPECT_THAT(Map<double>(*sign, {-3, 0, 0.5}, inverse),
                IsOkAndHolds(ElementsAre(-1, 0, 1)));
    EXPECT_THAT(Map<int16_t>(*sign, {-3, 0, 7}, inverse),
                IsOkAndHolds(ElementsAre(-1, 0, 1)));
  }
}

TEST(SignTest, DTypesThatAreNoNumbersAreRefusedNamingTheKey) {
  const std::unique_ptr<RowwiseTransform> transforms[] = {
      *Sign::Create({.in_keys = {"done"}}),
      *Clip::Create({.in_keys = {"done"}, .low = 0}),
      *BinarizeReward::Create({.in_keys = {"done"}})};
  for (const auto& transform : transforms) {
    EXPECT_THAT(
        transform->ForwardSpec(TedSpec()),
        StatusIs(kInvalidArgument,
                 AllOf(HasSubstr(std::string(transform->name())),
                       HasSubstr("\"done\""), HasSubstr("got bool[1]"))));
  }
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Clip,
                                  InABuffer<Clip>(kClip, WithVectorAction()));
INSTANTIATE_TRANSFORM_CONFORMANCE(RewardClipping,
                                  InABuffer<RewardClipping>({.clamp_max = 1},
                                                            TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(BinarizeReward,
                                  InABuffer<BinarizeReward>({}, TedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Sign,
                                  InABuffer<Sign>(kSign, WithVectorAction()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Clip, BesideAnEnvironment<Clip>(kClip, WithVectorAction()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    RewardClipping,
    BesideAnEnvironment<RewardClipping>({.clamp_max = 1}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    BinarizeReward, BesideAnEnvironment<BinarizeReward>({}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Sign, BesideAnEnvironment<Sign>(kSign, WithVectorAction()));

}  // namespace rill
