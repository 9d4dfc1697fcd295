// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/status_matchers.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::Not;
using ::testing::Pointee;

absl::StatusOr<int> Lost() { return absl::NotFoundError("no key \"a\""); }

TEST(StatusMatchersTest, AssertOkAndAssignMovesTheValue) {
  RILL_ASSERT_OK_AND_ASSIGN(const int seven, absl::StatusOr<int>(7));
  EXPECT_EQ(seven, 7);
  std::unique_ptr<int> pointer;
  RILL_ASSERT_OK_AND_ASSIGN(
      pointer, absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(4)));
  EXPECT_THAT(pointer, Pointee(4));
}

TEST(StatusMatchersTest, CodesAreMatchedWithATextOfTheMessage) {
  EXPECT_THAT(Lost(), IsNotFound());
  EXPECT_THAT(Lost().status(), IsNotFound("key \"a\""));
  EXPECT_THAT(Lost(), Not(IsNotFound("key \"b\"")));
  EXPECT_THAT(Lost(), Not(IsDataLoss()));
  EXPECT_THAT(absl::InvalidArgumentError("x"), IsInvalidArgument());
  EXPECT_THAT(absl::FailedPreconditionError("x"), IsFailedPrecondition());
  EXPECT_THAT(absl::OutOfRangeError("x"), IsOutOfRange());
  EXPECT_THAT(absl::DataLossError("x"), IsDataLoss());
  EXPECT_THAT(absl::UnavailableError("x"), IsUnavailable());
  EXPECT_THAT(absl::ResourceExhaustedError("x"), IsResourceExhausted());
  EXPECT_THAT(absl::DeadlineExceededError("x"), IsDeadlineExceeded());
  EXPECT_THAT(absl::InternalError("x"), IsInternal());
}

TEST(StatusMatchersTest, MismatchShowsTheWholeStatus) {
  RILL_EXPECT_OK(absl::OkStatus());
  RILL_ASSERT_OK(absl::StatusOr<int>(7));
  EXPECT_NONFATAL_FAILURE(RILL_EXPECT_OK(Lost()), "NOT_FOUND: no key \"a\"");
  EXPECT_NONFATAL_FAILURE(RILL_EXPECT_OK(Lost().status()),
                          "NOT_FOUND: no key \"a\"");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Lost(), IsOkAndHolds(7)),
                          "NOT_FOUND: no key \"a\"");
  EXPECT_FATAL_FAILURE(RILL_ASSERT_OK_AND_ASSIGN(auto v, Lost());
                       (void)v, "Lost() returned NOT_FOUND");
}

}  // namespace
}  // namespace rill
