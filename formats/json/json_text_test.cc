// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/json_text.h"

#include <string>

#include "gtest/gtest.h"

namespace rill::formats_internal {
namespace {

TEST(JsonTextTest, DepthIsThatOfTheDeepestBracket) {
  EXPECT_EQ(JsonDepth(""), 0);
  EXPECT_EQ(JsonDepth("3"), 0);
  EXPECT_EQ(JsonDepth("[[],[[]],{}]"), 3);
  EXPECT_EQ(JsonDepth(R"({"a":[1],"b":2})"), 2);
}

TEST(JsonTextTest, BracketsInStringsDoNotCount) {
  EXPECT_EQ(JsonDepth(R"(["[[[", "\"[[", "\\"])"), 1);
}

TEST(JsonTextTest, NeedsNoStackForAnyDepth) {
  EXPECT_EQ(JsonDepth(std::string(1 << 20, '[')), 1 << 20);
}

}  // namespace
}  // namespace rill::formats_internal
