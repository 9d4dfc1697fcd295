// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/split_trajectories.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Observations 1 .. 6 of [2, 3] steps.
TensorDict Rollout(const std::vector<bool>& done) {
  TensorDict rollout({2, 3});
  RILL_EXPECT_OK(rollout.Set("observation",
                             *Tensor::From<float>({1, 2, 3, 4, 5, 6}, {2, 3})));
  Tensor flags = *Tensor::Zeros(DType::kBool, {2, 3, 1});
  for (size_t i = 0; i < done.size(); ++i) flags.data<bool>()[i] = done[i];
  RILL_EXPECT_OK(rollout.Set("next/done", flags));
  return rollout;
}

TEST(SplitTrajectoriesTest, Example) {
  const TensorDict rollout = Rollout({false, true, false, false, false, false});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict episodes, SplitTrajectories(rollout));
  EXPECT_EQ(episodes.batch_shape(), Shape({3, 3}));
  EXPECT_THAT(
      episodes.Get("observation"),
      IsOkAndHolds(TensorElementsAre<float>(1, 2, 0, 3, 0, 0, 4, 5, 6)));
  EXPECT_THAT(episodes.Get("collector/mask"),
              IsOkAndHolds(TensorElementsAre<bool>(
                  true, true, false, true, false, false, true, true, true)));
  EXPECT_THAT(
      episodes.Get("collector/traj_ids"),
      IsOkAndHolds(TensorElementsAre<int64_t>(0, 0, 0, 1, 0, 0, 2, 2, 2)));
}

// The two lanes' trajectories have one id, as those of two workers may.
TEST(SplitTrajectoriesTest, IdsWinAndALaneEndsItsTrajectory) {
  TensorDict rollout = Rollout({false, true, false, false, false, false});
  RILL_ASSERT_OK(
      rollout.Set("collector/traj_ids",
                  *Tensor::From<int64_t>({7, 7, 7, 7, 9, 9}, {2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict episodes,
                            SplitTrajectories(rollout));
  EXPECT_EQ(episodes.batch_shape(), Shape({3, 3}));
  EXPECT_THAT(
      episodes.Get("observation"),
      IsOkAndHolds(TensorElementsAre<float>(1, 2, 3, 4, 0, 0, 5, 6, 0)));
}

// The example of TorchRL's split_trajectories; tools/peer_exchange compares
// random batches.
TEST(SplitTrajectoriesTest, TorchRlsExample) {
  TensorDict data({15});
  RILL_ASSERT_OK(data.Set(
      "obs", *Tensor::From<int64_t>(
                 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4}, {15})));
  RILL_ASSERT_OK(data.Set(
      "trajectory", *Tensor::From<int64_t>(
                        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, {15})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict split,
      SplitTrajectories(data,
                        {.trajectory_key = "trajectory", .mask_key = "mask"}));
  EXPECT_EQ(split.batch_shape(), Shape({2, 10}));
  EXPECT_THAT(split.Get("obs"),
              IsOkAndHolds(TensorElementsAre<int64_t>(
                  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0)));
  EXPECT_THAT(split.Get("mask"), IsOkAndHolds(TensorElementsAre<bool>(
                                     true, true, true, true, true, true, true,
                                     true, true, true, true, true, true, true,
                                     true, false, false, false, false, false)));
}

TEST(SplitTrajectoriesTest, RowsThatOnlyPaddedStayMasked) {
  TensorDict rollout = Rollout({});
  RILL_ASSERT_OK(rollout.Set(
      "collector/mask",
      *Tensor::From<bool>({true, true, false, true, true, true}, {2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict episodes,
                            SplitTrajectories(rollout));
  EXPECT_THAT(episodes.Get("collector/mask"),
              IsOkAndHolds(TensorElementsAre<bool>(true, true, false, true,
                                                   true, true)));
}

// Two workers' batches side by side; the second stopped early.
TensorDict Preempted() {
  TensorDict batch = Rollout({});
  RILL_EXPECT_OK(
      batch.Set("collector/traj_ids",
                *Tensor::From<int64_t>({3, 4, 4, 7, -1, -1}, {2, 3})));
  RILL_EXPECT_OK(batch.Set(
      "collector/mask",
      *Tensor::From<bool>({true, true, true, true, false, false}, {2, 3})));
  return batch;
}

TEST(SplitTrajectoriesTest, MissingStepsAreLeftOut) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict episodes,
                            SplitTrajectories(Preempted()));
  EXPECT_EQ(episodes.batch_shape(), Shape({3, 2}));
  EXPECT_THAT(episodes.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, 0, 2, 3, 4, 0)));
  EXPECT_THAT(episodes.Get("collector/mask"),
              IsOkAndHolds(TensorElementsAre<bool>(true, false, true, true,
                                                   true, false)));
  TensorDict batch = Preempted();
  Tensor ids = *batch.Get("collector/traj_ids");
  std::fill_n(ids.data<int64_t>(), 6, -1);
  EXPECT_THAT(SplitTrajectories(batch),
              StatusIs(kInvalidArgument, HasSubstr("got -1 in all of [2, 3]")));
}

TEST(SplitTrajectoriesTest, WithoutPaddingOneTrajectoryIsBehindTheOther) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps,
                            SplitTrajectories(Preempted(), {.pad = false}));
  EXPECT_EQ(steps.batch_shape(), Shape({4}));
  EXPECT_THAT(steps.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(1, 2, 3, 4)));
  EXPECT_THAT(steps.Get("collector/traj_ids"),
              IsOkAndHolds(TensorElementsAre<int64_t>(3, 4, 4, 7)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict whole,
                            SplitTrajectories(Rollout({}), {.pad = false}));
  EXPECT_THAT(whole, HasKeys("observation", "next/done", "collector/traj_ids"));
  EXPECT_EQ(whole.batch_shape(), Shape({6}));
}

// Values, nested entries and dtypes are as they were, whatever is padded.
TEST(SplitTrajectoriesTest, NestedLeavesAndValuesFollowTheirSteps) {
  TensorDict rollout = Rollout({false, true, false, false, false, false});
  RILL_ASSERT_OK(rollout.Set(
      "agents/left/id", *Tensor::From<uint8_t>({1, 2, 3, 4, 5, 6}, {2, 3})));
  RILL_ASSERT_OK(rollout.Set("task", NonTensor{"\"reach\""}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict episodes,
                            SplitTrajectories(rollout));
  EXPECT_THAT(
      episodes.Get("agents/left/id"),
      IsOkAndHolds(TensorElementsAre<uint8_t>(1, 2, 0, 3, 0, 0, 4, 5, 6)));
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensor task,
                            episodes.GetNonTensor("task"));
  EXPECT_EQ(task, NonTensor{"\"reach\""});
}

TEST(SplitTrajectoriesTest, NothingIsLostOfRandomBatches) {
  const Rng rng(5, RngStream::kUser);
  for (uint64_t round = 0; round < 50; ++round) {
    const int64_t lanes = 1 + rng.UniformInt(round, 0, 4);
    const int64_t time = 1 + rng.UniformInt(round, 1, 20);
    TensorDict batch({lanes, time});
    Tensor steps = *Tensor::Empty(DType::kInt64, {lanes, time});
    Tensor done = *Tensor::Empty(DType::kBool, {lanes, time, 1});
    int64_t trajectories = 0;
    for (int64_t i = 0; i < lanes * time; ++i) {
      steps.data<int64_t>()[i] = i;
      const bool is_end =
          rng.UniformInt(round, static_cast<uint32_t>(100 + i), 5) == 0;
      done.data<bool>()[i] = is_end;
      if (is_end || (i + 1) % time == 0) ++trajectories;
    }
    RILL_ASSERT_OK(batch.Set("step", steps));
    RILL_ASSERT_OK(batch.Set("next/done", done));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict split, SplitTrajectories(batch));
    ASSERT_EQ(split.batch_shape()[0], trajectories);
    const bool* mask = split.Find("collector/mask")->data<bool>();
    const bool* ends = split.Find("next/done")->data<bool>();
    const int64_t* step = split.Find("step")->data<int64_t>();
    const int64_t longest = split.batch_shape()[1];
    int64_t next = 0;
    bool is_longest_used = false;
    for (int64_t i = 0; i < trajectories * longest; ++i) {
      ASSERT_TRUE(mask[i] || i % longest > 0);
      if (!mask[i]) {
        ASSERT_EQ(step[i], 0);
        continue;
      }
      ASSERT_EQ(step[i], next++);
      ASSERT_FALSE(i % longest > 0 && ends[i - 1]);
      is_longest_used = is_longest_used || i % longest == longest - 1;
    }
    EXPECT_EQ(next, lanes * time);
    EXPECT_TRUE(is_longest_used);
  }
}

TEST(SplitTrajectoriesTest, BatchesThatCannotBeSplitAreNamed) {
  EXPECT_THAT(
      SplitTrajectories(TensorDict({4})),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("collector/traj_ids"), HasSubstr("next/done"))));
  EXPECT_THAT(SplitTrajectories(TensorDict({2, 0})),
              StatusIs(kInvalidArgument, HasSubstr("got [2, 0]")));
  EXPECT_THAT(SplitTrajectories(TensorDict()),
              StatusIs(kInvalidArgument, HasSubstr("batch shape: got []")));
  TensorDict batch = Rollout({});
  RILL_ASSERT_OK(
      batch.Set("collector/traj_ids", *Tensor::Zeros(DType::kFloat32, {2, 3})));
  EXPECT_THAT(SplitTrajectories(batch),
              StatusIs(kInvalidArgument, HasSubstr("collector/traj_ids")));
  batch = Rollout({});
  RILL_ASSERT_OK(
      batch.Set("collector/mask", *Tensor::Zeros(DType::kBool, {2, 3, 1})));
  EXPECT_THAT(SplitTrajectories(batch),
              StatusIs(kInvalidArgument, HasSubstr("collector/mask")));
}

}  // namespace
}  // namespace rill
