// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TEST(LaneFlagsTest, SetKeepsDoneConsistent) {
  TensorDict dict({4});
  for (const char* key : {"done", "terminated", "truncated"}) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor flag, Tensor::Zeros(DType::kBool, {4, 1}));
    RILL_ASSERT_OK(dict.Set(key, std::move(flag)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(LaneFlags flags, FindLaneFlags(dict));
  flags.Set(1, /*is_terminated=*/true, /*is_truncated=*/false);
  flags.Set(2, /*is_terminated=*/false, /*is_truncated=*/true);
  flags.Set(3, /*is_terminated=*/true, /*is_truncated=*/true);
  EXPECT_THAT(flags.done, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(flags.terminated, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(flags.truncated, ElementsAre(0, 0, 1, 1));
}

TEST(LaneFlagsTest, OfAGroupAreTheAgentsOfOneLaneBehindThoseOfAnother) {
  EnvSpec spec = {.name = "T", .lanes = 2};
  RILL_ASSERT_OK(spec.action.Set("agents/action", LeafSpec::Binary({3})));
  RILL_ASSERT_OK(AddFlags("agents", {3, 1}, &spec));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step, MakeStep(spec));
  RILL_ASSERT_OK_AND_ASSIGN(const LaneFlags flags,
                            FindLaneFlags(step, "next/agents/"));
  ASSERT_EQ(flags.done.size(), 6u);
  flags.Set(/*lane=*/1 * 3 + 2, /*is_terminated=*/true, false);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor done, step.Get("next/agents/done"));
  EXPECT_EQ(done.shape(), Shape({2, 3, 1}));
  EXPECT_THAT(done.Flat<bool>(), IsOkAndHolds(ElementsAre(0, 0, 0, 0, 0, 1)));
}

TEST(LaneMaskTest, HasOneEntryALaneAndGroup) {
  const EnvSpec spec = {
      .name = "T", .lanes = 2, .own_episodes = {"a", "b", "c"}};
  const std::vector<uint8_t> two = {1, 0}, three = {1, 0, 1}, six(6, 1);
  RILL_EXPECT_OK(CheckMask("T", spec, two));
  RILL_EXPECT_OK(CheckMask("T", spec, {two, six}));
  EXPECT_THAT(CheckMask("T", spec, three),
              StatusIs(kInvalidArgument, HasSubstr("3 entries, want one a")));
  EXPECT_THAT(CheckMask("T", spec, {two, three}),
              StatusIs(kInvalidArgument, HasSubstr("3 entries, want 6")));
}

TEST(CheckRunningTest, NamesTheFirstLaneWithoutAnEpisode) {
  const std::vector<uint8_t> all = {1, 1}, some = {1, 0, 0};
  RILL_EXPECT_OK(CheckRunning("T", all));
  EXPECT_THAT(CheckRunning("T::Step", some),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("T::Step: lane 1 is done")));
}

TEST(CheckIdleTest, NamesTheCallBetweenBeginStepAndEndStep) {
  RILL_EXPECT_OK(CheckIdle("Cart", "Reset", /*is_stepping=*/false));
  EXPECT_THAT(CheckIdle("Cart", "Reset", /*is_stepping=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "Cart::Reset: a step has begun; call EndStep first"));
}

TEST(CutOffLaneTest, EndsTheLaneAndItsGroupsAndNoOther) {
  EnvSpec spec = {.name = "T", .lanes = 2};
  RILL_ASSERT_OK(
      spec.observation.Set("x", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(spec.action.Set("action", LeafSpec::Categorical(2)));
  RILL_ASSERT_OK(AddFlags("agents", {1}, &spec));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step, MakeStep(spec));
  const auto fill = [&](const char* key, auto a, auto b) {
    step.Find(key)->data<decltype(a)>()[0] = a;
    step.Find(key)->data<decltype(a)>()[1] = b;
  };
  fill("x", 1.0f, 2.0f);
  fill("next/x", 3.0f, 4.0f);
  fill("next/reward", 5.0f, 6.0f);
  fill("next/terminated", true, true);
  RILL_ASSERT_OK(CutOffLane(spec, step, 1));
  EXPECT_THAT(step.Flat<float>("next/x"), IsOkAndHolds(ElementsAre(3, 2)));
  EXPECT_THAT(step.Flat<float>("next/reward"), IsOkAndHolds(ElementsAre(5, 0)));
  EXPECT_THAT(step.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(true, false)));
  for (const char* key : {"next/done", "next/truncated", "next/agents/done",
                          "next/agents/truncated"}) {
    EXPECT_THAT(step.Flat<bool>(key), IsOkAndHolds(ElementsAre(false, true)))
        << key;
  }
}

}  // namespace
}  // namespace rill
