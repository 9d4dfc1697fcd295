// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/key.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KeyTest, ExamplesOfTheHeader) {
  EXPECT_EQ(JoinKey({"next", "observation"}), "next/observation");
  EXPECT_EQ(JoinKey({"a/b c", "x"}), R"(a\/b c/x)");
  EXPECT_EQ(EscapeKeyComponent(R"(a\b)"), R"(a\\b)");
  EXPECT_THAT(SplitKey(R"(a\/b c/x)"), IsOkAndHolds(ElementsAre("a/b c", "x")));
}

TEST(KeyTest, MalformedKeysAreNamed) {
  for (const char* key : {"", "/", "/a", "a/", "a//b"}) {
    EXPECT_THAT(SplitKey(key), IsInvalidArgument());
    EXPECT_THAT(CheckKey(key), IsInvalidArgument());
  }
  EXPECT_THAT(SplitKey("a//b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("empty component in \"a//b\""),
                             HasSubstr("\\/"))));
  EXPECT_THAT(SplitKey(R"(a\n)"),
              IsInvalidArgument(R"(broken escape in "a\n": got "\n")"));
  EXPECT_THAT(SplitKey(R"(a\)"), IsInvalidArgument());
}

TEST(KeyTest, HeadsSkipEscapedSeparators) {
  absl::string_view head, rest;
  SplitKeyHead("next/observation", &head, &rest);
  EXPECT_EQ(head, "next");
  EXPECT_EQ(rest, "observation");
  SplitKeyHead("reward", &head, &rest);
  EXPECT_EQ(head, "reward");
  EXPECT_EQ(rest, "");
  SplitKeyHead(R"(a\/b/c)", &head, &rest);
  EXPECT_EQ(head, R"(a\/b)");
  EXPECT_EQ(rest, "c");
  SplitKeyHead(R"(a\\/c)", &head, &rest);  // The component is "a\".
  EXPECT_EQ(head, R"(a\\)");
  EXPECT_EQ(rest, "c");
}

// Any components come back from their text, through SplitKey and through heads.
TEST(KeyTest, RandomComponentsRoundTrip) {
  const Rng rng(2);
  constexpr absl::string_view kLetters = "a/\\b .";
  for (uint32_t round = 0; round < 5000; ++round) {
    std::vector<std::string> parts(
        static_cast<size_t>(rng.UniformInt(round, 0, 4) + 1));
    uint32_t draw = 1;
    for (std::string& part : parts) {
      const int64_t length = rng.UniformInt(round, draw++, 6) + 1;
      for (int64_t i = 0; i < length; ++i) {
        part += kLetters[static_cast<size_t>(rng.UniformInt(
            round, draw++, static_cast<int64_t>(kLetters.size())))];
      }
    }
    const std::vector<absl::string_view> views(parts.begin(), parts.end());
    const std::string text = JoinKey(views);
    ASSERT_THAT(SplitKey(text), IsOkAndHolds(parts)) << text;
    absl::string_view head, rest = text;
    for (const std::string& part : parts) {
      SplitKeyHead(rest, &head, &rest);
      ASSERT_EQ(head, EscapeKeyComponent(part)) << text;
    }
    EXPECT_EQ(rest, "");
  }
}

}  // namespace
}  // namespace rill
