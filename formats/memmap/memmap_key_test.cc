// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_key.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace rill::formats_internal {
namespace {

TEST(MemmapKeyTest, NamesAreThePeers) {
  EXPECT_EQ(MemmapFileName("obs"), "obs");
  EXPECT_EQ(MemmapFileName("a.b"), "a.b");
  EXPECT_EQ(MemmapFileName("a/b c"), "a%2Fb%20c");
  EXPECT_EQ(MemmapFileName(""), "%");
  EXPECT_EQ(MemmapFileName("."), "%2E");
  EXPECT_EQ(MemmapFileName(".."), "%2E%2E");
  EXPECT_EQ(MemmapFileName("..."), "...");
  EXPECT_EQ(MemmapFileName("<>:\"|?*\\%\x7F\n"),
            "%3C%3E%3A%22%7C%3F%2A%5C%25%7F%0A");
  EXPECT_EQ(MemmapFileName(absl::string_view("\0x", 2)), "%00x");
  EXPECT_EQ(MemmapFileName("\xC3\xA9"), "\xC3\xA9");
}

TEST(MemmapKeyTest, DifferentKeysHaveDifferentNamesThatStayInTheFolder) {
  const absl::string_view alphabet("a./%2E\\ :", 9);
  std::set<std::string> names;
  size_t keys = 0;
  for (const char a : alphabet) {
    for (const char b : alphabet) {
      for (const char c : alphabet) {
        const std::string name = MemmapFileName(std::string{a, b, c});
        EXPECT_EQ(name.find('/'), std::string::npos);
        EXPECT_NE(name, "..");
        names.insert(name);
        ++keys;
      }
    }
  }
  EXPECT_EQ(names.size(), keys);
}

TEST(MemmapKeyTest, BareNamesMustBeHarmless) {
  EXPECT_TRUE(MayNameFileItself("a b"));
  EXPECT_TRUE(MayNameFileItself("ab:c"));
  for (const absl::string_view key :
       {"", ".", "..", "a/b", "/etc/passwd", "a\\b", "C:x"}) {
    EXPECT_FALSE(MayNameFileItself(key)) << key;
  }
  EXPECT_FALSE(MayNameFileItself(absl::string_view("a\0b", 3)));
}

TEST(MemmapKeyTest, ThreeNamesAreReserved) {
  for (const absl::string_view name : {"shape", "device", "_type"}) {
    EXPECT_TRUE(IsReservedMemmapName(name));
    EXPECT_FALSE(IsReservedMemmapName(absl::StrCat(name, "s")));
  }
}

}  // namespace
}  // namespace rill::formats_internal
