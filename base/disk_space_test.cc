// SPDX-License-Identifier: Apache-2.0
#include "rill/base/disk_space.h"

#include <sys/statvfs.h>

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace rill {
namespace {

TEST(DiskSpaceTest, FreeBytesAreThoseOfTheFileSystem) {
  const std::string path = ::testing::TempDir();
  const auto free = FreeDiskBytes(path);
  ASSERT_TRUE(free.has_value());
  struct statvfs fs;
  ASSERT_EQ(statvfs(path.c_str(), &fs), 0);
  EXPECT_GT(*free, 0);
  EXPECT_LE(*free, static_cast<int64_t>(fs.f_blocks * fs.f_frsize));
  EXPECT_EQ(FreeDiskBytes("/proc"), 0);
}

TEST(DiskSpaceTest, OfWhatIsNotThereNothingIsTold) {
  EXPECT_EQ(FreeDiskBytes(::testing::TempDir() + "/none"), std::nullopt);
}

}  // namespace
}  // namespace rill
