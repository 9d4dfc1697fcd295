// SPDX-License-Identifier: Apache-2.0
#include "rill/base/new_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kCaller = "Caller::Create";
constexpr absl::string_view kWhat = "Options::directory";

class NewDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { root_ = FreshDirectory(); }
  std::string In(const std::string& name) const {
    return JoinPath(root_, name);
  }

  std::string root_;
};

TEST_F(NewDirectoryTest, MakesADirectoryAndItsParent) {
  RILL_EXPECT_OK(MakeNewDirectory(kCaller, kWhat, In("a")));
  EXPECT_TRUE(IsDirectory(In("a")));
  RILL_EXPECT_OK(MakeNewDirectory(kCaller, kWhat, In("b/c/")));
  EXPECT_TRUE(IsDirectory(In("b/c")));
  RILL_EXPECT_OK(MakeNewDirectory(kCaller, kWhat, In("b/c")));
}

TEST_F(NewDirectoryTest, ChecksWithoutMakingAnything) {
  RILL_EXPECT_OK(CheckNewDirectory(kCaller, kWhat, In("a/b")));
  EXPECT_FALSE(PathExists(In("a")));
}

TEST_F(NewDirectoryTest, MakesNothingWhereTwoLevelsAreMissing) {
  const std::string path = In("nowhere/at/all");
  EXPECT_THAT(
      MakeNewDirectory(kCaller, kWhat, path),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("Caller::Create: Options::directory: got \"" +
                               path + "\""),
                     HasSubstr("make \"" + In("nowhere/at") + "\" first"))));
  EXPECT_FALSE(PathExists(In("nowhere")));
}

TEST_F(NewDirectoryTest, RelativePathsLieInTheWorkingDirectory) {
  RILL_EXPECT_OK(CheckNewDirectory(kCaller, kWhat, "rows"));
  RILL_EXPECT_OK(CheckNewDirectory(kCaller, kWhat, "runs/rows"));
  EXPECT_THAT(CheckNewDirectory(kCaller, kWhat, "a/slip/rows"), IsNotFound());
}

TEST_F(NewDirectoryTest, FileInTheWayIsRefused) {
  std::ofstream(In("file")) << "x";
  for (const std::string& path :
       {In("file"), In("file/rows"), In("file/a/rows")}) {
    EXPECT_THAT(MakeNewDirectory(kCaller, kWhat, path),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("Options::directory: got \"" + path),
                               HasSubstr(In("file") + "\" is a file"))));
  }
}

// Even to a process that may write everywhere the system says no for /proc.
TEST_F(NewDirectoryTest, DirectoryThatMayNotBeWrittenIsNamedWithTheOption) {
  std::string path = "/proc/rill/rows";
  if (geteuid() != 0) {
    path = In("closed/rows");
    RILL_ASSERT_OK(CreateDirectories(In("closed")));
    ASSERT_EQ(chmod(In("closed").c_str(), 0500), 0);
    EXPECT_THAT(MakeNewDirectory(kCaller, kWhat, In("closed")),
                StatusIs(absl::StatusCode::kPermissionDenied));
  }
  const absl::Status status = MakeNewDirectory(kCaller, kWhat, path);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(),
              HasSubstr("Caller::Create: Options::directory: got \"" + path));
}

}  // namespace
}  // namespace rill
