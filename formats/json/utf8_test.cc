// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/json/utf8.h"

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace rill::formats_internal {
namespace {

TEST(Utf8Test, AcceptsTextOfAllLengths) {
  for (const absl::string_view text :
       {"", "obs", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
        "\xF4\x8F\xBF\xBF", "a\xC3\xA9z"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesBrokenOverlongAndForbiddenForms) {
  for (const absl::string_view text :
       {"\x80", "\xC3", "a\xC3(", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80",
        "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF", "\xE2\x82"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace rill::formats_internal
