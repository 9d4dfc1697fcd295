// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/fresh_path.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::EndsWith;
using ::testing::IsEmpty;

TEST(FreshPathTest, NothingOfAnEarlierCallIsThere) {
  const std::string path = FreshPath("a.bin");
  EXPECT_THAT(path, EndsWith("a.bin"));
  RILL_ASSERT_OK(WriteFileAtomically(path, "x"));
  EXPECT_NE(FreshPath("b.bin"), path);
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("x"));
  EXPECT_EQ(FreshPath("a.bin"), path);
  EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kNotFound));
}

class FreshPathOfParametersTest : public ::testing::TestWithParam<int> {};

TEST_P(FreshPathOfParametersTest, ADirectoryIsThereAndEmpty) {
  for (int i = 0; i < 2; ++i) {
    const std::string path = FreshDirectory();
    EXPECT_THAT(ListDirectory(path), IsOkAndHolds(IsEmpty()));
    RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "x"), "x"));
  }
}

INSTANTIATE_TEST_SUITE_P(Some, FreshPathOfParametersTest,
                         ::testing::Values(1, 2));

TEST(NextFreshPathTest, ATestKeepsAllOfItsOwn) {
  const std::string first = NextFreshPath("root");
  RILL_ASSERT_OK(CreateDirectories(first));
  EXPECT_NE(NextFreshPath("root"), first);
  EXPECT_TRUE(IsDirectory(first));
}

TEST(NextFreshPathTest, TheNextTestRemovesThem) {
  const std::string second = NextFreshPath("root");
  EXPECT_FALSE(IsDirectory(second.substr(0, second.rfind('/'))));
}

}  // namespace
}  // namespace rill
