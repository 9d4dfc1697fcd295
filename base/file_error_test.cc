// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file_error.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill::base_internal {
namespace {

TEST(FileErrorTest, SpaceThatCannotBeThereIsKnownBeforeItIsTaken) {
  const std::string path = JoinPath(::testing::TempDir(), "file_error");
  RILL_ASSERT_OK(RemoveAll(path));
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_TRUE(file.is_open());
  struct statvfs fs;
  ASSERT_EQ(fstatvfs(file.get(), &fs), 0);
  const int64_t disk = static_cast<int64_t>(fs.f_blocks * fs.f_frsize);
  EXPECT_FALSE(LacksSpaceFor(file.get(), 1));
  EXPECT_TRUE(LacksSpaceFor(file.get(), disk + fs.f_frsize));
  EXPECT_TRUE(LacksSpaceFor(file.get(), INT64_MAX));
  RILL_EXPECT_OK(RemoveAll(path));
}

}  // namespace
}  // namespace rill::base_internal
