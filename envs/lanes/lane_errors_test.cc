// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lanes/lane_errors.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::envs_internal {
namespace {

using ::testing::Each;

TEST(LaneErrorsTest, NameAllLanesAndHaveTheCodeOfTheFirst) {
  std::vector<absl::Status> lanes = {
      absl::OkStatus(), absl::UnavailableError("gone"), absl::OkStatus(),
      absl::DeadlineExceededError("late")};
  EXPECT_THAT(TakeLaneErrors("Cart::Step", absl::MakeSpan(lanes)),
              StatusIs(absl::StatusCode::kUnavailable,
                       "Cart::Step: lane 1: gone; lane 3: late"));
  EXPECT_THAT(lanes, Each(IsOk()));
  RILL_EXPECT_OK(TakeLaneErrors("Cart::Step", absl::MakeSpan(lanes)));
}

TEST(LaneErrorsTest, DoNotPromiseThatNothingHasHappened) {
  for (const absl::Status& error : {absl::InvalidArgumentError("of the lane"),
                                    absl::FailedPreconditionError("its own")}) {
    std::vector<absl::Status> lanes = {error};
    EXPECT_THAT(TakeLaneErrors("Cart::Step", absl::MakeSpan(lanes)),
                StatusIs(absl::StatusCode::kInternal));
  }
}

TEST(LaneErrorsTest, KeepThePayloadsOfTheFirst) {
  std::vector<absl::Status> lanes = {absl::InternalError("one"),
                                     absl::InternalError("two")};
  lanes[0].SetPayload("who", absl::Cord("first"));
  lanes[1].SetPayload("who", absl::Cord("second"));
  const absl::Status status =
      TakeLaneErrors("Cart::Step", absl::MakeSpan(lanes));
  EXPECT_EQ(status.GetPayload("who"), absl::Cord("first"));
}

}  // namespace
}  // namespace rill::envs_internal
