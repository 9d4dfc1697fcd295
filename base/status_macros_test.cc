// SPDX-License-Identifier: Apache-2.0
#include "rill/base/status_macros.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

absl::Status Check(const absl::Status& status) {
  RILL_RETURN_IF_ERROR(status);
  return absl::UnknownError("went on");
}

absl::Status CheckWithContext(const absl::Status& status) {
  RILL_RETURN_IF_ERROR(status) << "while restoring shard " << 3;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(value / 2);
}

absl::StatusOr<int> Quarter(int value) {
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(value));
  RILL_ASSIGN_OR_RETURN(half, Half(*half));
  return *half;
}

// The macro is one statement, also as the branch of an if.
absl::Status CheckIf(bool condition, const absl::Status& status) {
  if (condition)
    RILL_RETURN_IF_ERROR(status);
  else
    return absl::UnknownError("else");
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnIfErrorGoesOnWhenOk) {
  EXPECT_THAT(Check(absl::OkStatus()),
              StatusIs(absl::StatusCode::kUnknown, "went on"));
}

TEST(StatusMacrosTest, ReturnIfErrorReturnsTheStatusUnchanged) {
  EXPECT_EQ(Check(absl::NotFoundError("x")), absl::NotFoundError("x"));
}

TEST(StatusMacrosTest, ContextComesBehindTheText) {
  EXPECT_THAT(CheckWithContext(absl::DataLossError("checksum")),
              StatusIs(absl::StatusCode::kDataLoss,
                       "checksum; while restoring shard 3"));
  RILL_EXPECT_OK(CheckWithContext(absl::OkStatus()));
}

TEST(StatusMacrosTest, ContextKeepsPayloads) {
  absl::Status status = absl::DataLossError("checksum");
  status.SetPayload("url", absl::Cord("payload"));
  EXPECT_EQ(CheckWithContext(status).GetPayload("url"), absl::Cord("payload"));
}

TEST(StatusMacrosTest, ReturnIfErrorIsOneStatement) {
  EXPECT_THAT(CheckIf(true, absl::NotFoundError("x")), IsNotFound());
  RILL_EXPECT_OK(CheckIf(true, absl::OkStatus()));
  EXPECT_THAT(CheckIf(false, absl::OkStatus()),
              StatusIs(absl::StatusCode::kUnknown, "else"));
}

TEST(StatusMacrosTest, AssignOrReturnMovesValuesAndReturnsErrors) {
  EXPECT_THAT(Quarter(12), IsOkAndHolds(3));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

TEST(ErrorsTest, EachKindJoinsItsParts) {
  EXPECT_EQ(InvalidArgument("got ", 3, ", want ", 2.5),
            absl::InvalidArgumentError("got 3, want 2.5"));
  EXPECT_EQ(FailedPrecondition("a", 1), absl::FailedPreconditionError("a1"));
  EXPECT_EQ(DataLoss("a", 1), absl::DataLossError("a1"));
  EXPECT_EQ(OutOfRange("a", 1), absl::OutOfRangeError("a1"));
  EXPECT_EQ(NotFound("a", 1), absl::NotFoundError("a1"));
  EXPECT_EQ(ResourceExhausted("a", 1), absl::ResourceExhaustedError("a1"));
  EXPECT_EQ(Unavailable("a", 1), absl::UnavailableError("a1"));
  EXPECT_EQ(Internal("a", 1), absl::InternalError("a1"));
}

}  // namespace
}  // namespace rill
