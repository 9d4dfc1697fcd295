// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/replaceable.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::WriteInPlace;

TEST(ReplaceableTest, NothingAndEmptyAndMarkedDirectoriesMayBeReplaced) {
  const std::string path = FreshPath("replaceable");
  RILL_EXPECT_OK(CheckReplaceable("Save", path, "rill.json"));
  RILL_ASSERT_OK(CreateDirectories(path));
  RILL_EXPECT_OK(CheckReplaceable("Save", path, "rill.json"));
  WriteInPlace(JoinPath(path, "data"), "x");
  WriteInPlace(JoinPath(path, "rill.json"), "{}");
  RILL_EXPECT_OK(CheckReplaceable("Save", path, "rill.json"));
}

TEST(ReplaceableTest, RowsOfALiveStorageAreNotReplaced) {
  const std::string path = FreshPath("replaceable");
  RILL_ASSERT_OK(CreateDirectories(path));
  WriteInPlace(JoinPath(path, "rill.json"), "{}");
  WriteInPlace(JoinPath(path, "rill.commit"), "x");
  EXPECT_THAT(CheckReplaceable("Save", path, "rill.json"),
              IsFailedPrecondition("a storage lives"));
}

TEST(ReplaceableTest, SomebodysFilesAreNotReplaced) {
  const std::string path = FreshPath("replaceable");
  RILL_ASSERT_OK(CreateDirectories(path));
  WriteInPlace(JoinPath(path, "thesis.tex"), "x");
  EXPECT_THAT(CheckReplaceable("Save", path, "rill.json"),
              IsFailedPrecondition("thesis.tex"));
  EXPECT_THAT(
      CheckReplaceable("Save", JoinPath(path, "thesis.tex"), "rill.json"),
      IsFailedPrecondition("a file"));
}

TEST(ReplaceableTest, OneMissingParentMayBeMade) {
  const std::string path = FreshPath("replaceable_parents");
  RILL_EXPECT_OK(CheckReplaceable("Save", JoinPath(path, "a"), "rill.json"));
  EXPECT_THAT(CheckReplaceable("Save", JoinPath(path, "a/b"), "rill.json"),
              IsNotFound("Save: directory: got \"" + JoinPath(path, "a/b")));
  EXPECT_FALSE(PathExists(path));
}

}  // namespace
}  // namespace rill
