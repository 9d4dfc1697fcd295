// SPDX-License-Identifier: Apache-2.0
#include "rill/base/held_directory.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

void Replace(const std::string& path, const std::string& content) {
  RILL_ASSERT_OK(ReplaceDirectory(path, [&](const std::string& fresh) {
    const absl::Status first =
        WriteFileAtomically(JoinPath(fresh, "first"), content);
    return first.ok() ? WriteFileAtomically(JoinPath(fresh, "second"), content)
                      : first;
  }));
}

absl::Status ReadBoth(const std::string& path, bool replace_between) {
  const HeldDirectory held(path);
  const auto first = ReadFile(JoinPath(path, "first"));
  if (replace_between) Replace(path, "new");
  const auto second = ReadFile(JoinPath(path, "second"));
  if (!held.IsStillThere()) return absl::AbortedError("read it again");
  EXPECT_EQ(*first, *second);
  return absl::OkStatus();
}

TEST(HeldDirectoryTest, Example) {
  const std::string path = FreshPath();
  Replace(path, "old");
  RILL_EXPECT_OK(ReadBoth(path, /*replace_between=*/false));
  EXPECT_THAT(ReadBoth(path, /*replace_between=*/true),
              StatusIs(absl::StatusCode::kAborted));
  RILL_EXPECT_OK(ReadBoth(path, /*replace_between=*/false));
}

TEST(HeldDirectoryTest, FilesBelowMayChange) {
  const std::string path = FreshPath();
  Replace(path, "old");
  const HeldDirectory held(path);
  RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "first"), "new"));
  EXPECT_TRUE(held.IsStillThere());
}

TEST(HeldDirectoryTest, WhatComesGoesOrReturnsUnderTheNameIsAnother) {
  const std::string path = FreshPath();
  const HeldDirectory none(path);
  EXPECT_TRUE(none.IsStillThere());
  Replace(path, "old");
  EXPECT_FALSE(none.IsStillThere());
  const HeldDirectory held(path);
  RILL_ASSERT_OK(RemoveAll(path));
  EXPECT_FALSE(held.IsStillThere());
  for (int i = 0; i < 20; ++i) {
    RILL_ASSERT_OK(RemoveAll(path));
    RILL_ASSERT_OK(CreateDirectories(path));
    EXPECT_FALSE(held.IsStillThere());
  }
}

}  // namespace
}  // namespace rill
