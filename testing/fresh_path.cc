// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/fresh_path.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

const ::testing::TestInfo& ThisTest() {
  return *::testing::UnitTest::GetInstance()->current_test_info();
}

}  // namespace

std::string FreshPath(absl::string_view name) {
  std::string file = absl::StrCat(ThisTest().test_suite_name(), ".",
                                  ThisTest().name(), ".", name);
  // Names of tests with parameters have slashes.
  std::replace(file.begin(), file.end(), '/', '_');
  const std::string path = JoinPath(::testing::TempDir(), file);
  RILL_EXPECT_OK(RemoveAll(path));
  return path;
}

std::string FreshDirectory(absl::string_view name) {
  const std::string path = FreshPath(name);
  RILL_EXPECT_OK(CreateDirectories(path));
  return path;
}

std::string NextFreshPath(absl::string_view name) {
  static int64_t count = 0;
  static const ::testing::TestInfo* test = nullptr;
  const std::string root = JoinPath(::testing::TempDir(), name);
  if (test != &ThisTest()) {
    test = &ThisTest();
    RILL_EXPECT_OK(RemoveAll(root));
  }
  return JoinPath(root, absl::StrCat(++count));
}

}  // namespace rill
