// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/status_matchers.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::_;
using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

absl::StatusOr<int> Seven() { return 7; }
absl::StatusOr<int> Lost() { return absl::NotFoundError("no key \"a\""); }

TEST(StatusMatchersTest, IsOkTellsOkFromErrors) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(Seven(), IsOk());
  EXPECT_THAT(absl::InternalError(""), Not(IsOk()));
  EXPECT_THAT(Lost(), Not(IsOk()));
  RILL_EXPECT_OK(absl::OkStatus());
  RILL_ASSERT_OK(Seven());
}

TEST(StatusMatchersTest, IsOkAndHoldsMatchesTheValue) {
  EXPECT_THAT(Seven(), IsOkAndHolds(7));
  EXPECT_THAT(Seven(), IsOkAndHolds(Gt(6)));
  EXPECT_THAT(Seven(), Not(IsOkAndHolds(8)));
  EXPECT_THAT(Lost(), Not(IsOkAndHolds(_)));
  EXPECT_THAT(absl::StatusOr<std::string>("abc"), IsOkAndHolds(HasSubstr("b")));
}

TEST(StatusMatchersTest, IsOkAndHoldsTakesValuesThatOnlyMove) {
  absl::StatusOr<std::unique_ptr<int>> value = std::make_unique<int>(3);
  EXPECT_THAT(value, IsOkAndHolds(Pointee(Eq(3))));
}

TEST(StatusMatchersTest, StatusIsMatchesCodeAndMessage) {
  EXPECT_THAT(Lost(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Lost(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("key")));
  EXPECT_THAT(Lost(), StatusIs(AnyOf(absl::StatusCode::kNotFound,
                                     absl::StatusCode::kInternal),
                               "no key \"a\""));
  EXPECT_THAT(Lost(), Not(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(Lost(),
              Not(StatusIs(absl::StatusCode::kNotFound, HasSubstr("value"))));
  EXPECT_THAT(Seven(), Not(StatusIs(absl::StatusCode::kNotFound)));
}

TEST(StatusMatchersTest, AssertOkAndAssignMovesTheValue) {
  RILL_ASSERT_OK_AND_ASSIGN(const int seven, Seven());
  EXPECT_EQ(seven, 7);
  std::unique_ptr<int> pointer;
  RILL_ASSERT_OK_AND_ASSIGN(
      pointer, absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(4)));
  EXPECT_THAT(pointer, Pointee(4));
}

int TimesIn(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

// The text of a failed EXPECT_THAT(value, matcher): the value, and the
// explanation of the matcher if it has one.
template <typename T, typename Matcher>
std::string ShownActual(const T& value, const Matcher& matcher) {
  ::testing::StringMatchResultListener listener;
  ::testing::SafeMatcherCast<const T&>(matcher).MatchAndExplain(value,
                                                                &listener);
  return ::testing::PrintToString(value) + listener.str();
}

TEST(StatusMatchersTest, MismatchShowsTheStatusOnce) {
  const absl::StatusOr<int> lost = Lost();
  for (const auto& matcher : {::testing::Matcher<const absl::Status&>(IsOk()),
                              ::testing::Matcher<const absl::Status&>(
                                  StatusIs(absl::StatusCode::kInternal))}) {
    EXPECT_EQ(TimesIn(ShownActual(lost.status(), matcher), "no key"), 1);
  }
  EXPECT_EQ(TimesIn(ShownActual(lost, IsOk()), "no key"), 1);
  // GoogleTest cannot print this value.
  struct Opaque {};
  const absl::StatusOr<Opaque> opaque = lost.status();
  EXPECT_EQ(TimesIn(ShownActual(opaque, IsOk()), "no key"), 1);
  EXPECT_EQ(TimesIn(ShownActual(lost, StatusIs(absl::StatusCode::kInternal)),
                    "no key"),
            1);
}

TEST(StatusMatchersTest, MismatchShowsTheWholeStatus) {
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Lost(), IsOk()),
                          "NOT_FOUND: no key \"a\"");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(Lost(), IsOkAndHolds(7)),
                          "NOT_FOUND: no key \"a\"");
  EXPECT_FATAL_FAILURE(RILL_ASSERT_OK_AND_ASSIGN(auto v, Lost());
                       (void)v, "Lost() returned NOT_FOUND");
}

}  // namespace
}  // namespace rill
