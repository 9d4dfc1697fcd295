// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileTest : public ::testing::Test {
 protected:
  // A directory of its own for each test.
  void SetUp() override { root_ = FreshDirectory(); }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(root_)); }

  std::string In(absl::string_view name) const { return JoinPath(root_, name); }
  std::vector<std::string> Names() const {
    return ListDirectory(root_).value_or(std::vector<std::string>{"?"});
  }

  std::string root_;
};

// Fails the `nth` time that `point` is reached.
FaultHook FailAt(absl::string_view point, int nth) {
  return [point = std::string(point), nth](absl::string_view reached,
                                           absl::string_view object) mutable {
    if (reached != point || --nth != 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("planted at ", object));
  };
}

TEST_F(FileTest, WrittenContentIsReadBack) {
  const std::string content("a\0b\n", 4);
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), content));
  EXPECT_THAT(ReadFile(In("f")), IsOkAndHolds(content));
  EXPECT_THAT(FileSize(In("f")), IsOkAndHolds(4));
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), ""));
  EXPECT_THAT(ReadFile(In("f")), IsOkAndHolds(""));
  EXPECT_THAT(Names(), ElementsAre("f"));
}

TEST_F(FileTest, BigContentIsReadBack) {
  std::string content(3 << 20, 'x');
  for (size_t i = 0; i < content.size(); i += 1000) content[i] = 'a' + i % 26;
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), content));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string back, ReadFile(In("f")));
  EXPECT_TRUE(back == content);
}

TEST_F(FileTest, MissingFileIsNotFoundByName) {
  const auto not_found = IsNotFound(In("missing"));
  EXPECT_THAT(ReadFile(In("missing")), not_found);
  EXPECT_THAT(FileSize(In("missing")), not_found);
  EXPECT_THAT(ListDirectory(In("missing")), not_found);
  EXPECT_THAT(WriteFileAtomically(In("missing/f"), "x"), IsNotFound());
}

TEST_F(FileTest, DirectoryIsNoFile) {
  RILL_ASSERT_OK(CreateDirectories(In("d")));
  const auto wrong_kind = IsFailedPrecondition(In("d"));
  EXPECT_THAT(ReadFile(In("d")), wrong_kind);
  EXPECT_THAT(FileSize(In("d")), wrong_kind);
  EXPECT_THAT(WriteFileAtomically(In("d"), "x"), wrong_kind);
  EXPECT_THAT(Names(), ElementsAre("d"));
}

TEST_F(FileTest, LargerFileThanAllowedIsRefusedWithBothSizes) {
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), "12345"));
  EXPECT_THAT(ReadFile(In("f"), 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got 5 bytes"), HasSubstr("<= 4"))));
  EXPECT_THAT(ReadFile(In("f"), 5), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadFile(In("f"), INT64_MAX), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadFile(In("f"), -1), IsInvalidArgument());
}

TEST_F(FileTest, EndlessFileIsCutOffAtTheLimit) {
  EXPECT_THAT(ReadFile("/dev/zero", 1000), IsInvalidArgument());
}

TEST_F(FileTest, NewFileIsNeverWrittenThroughALink) {
  RILL_ASSERT_OK(WriteFileAtomically(In("other"), "other"));
  const ScopedFaultHook hook([&](absl::string_view point,
                                 absl::string_view object) {
    if (point == "file.open") {  // Somebody was quicker with the name.
      EXPECT_EQ(symlink(In("other").c_str(), std::string(object).c_str()), 0);
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(WriteFileAtomically(In("f"), "12345"), IsFailedPrecondition());
  EXPECT_EQ(access(In("f").c_str(), F_OK), -1);
}

TEST_F(FileTest, FailedWriteLeavesTheOldContentAndNothingElse) {
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), "old"));
  // The second sync is the directory's, after the rename.
  const std::vector<std::pair<std::string, int>> faults = {{"file.open", 1},
                                                           {"file.write", 1},
                                                           {"file.sync", 1},
                                                           {"file.rename", 1},
                                                           {"file.sync", 2}};
  for (const auto& [point, nth] : faults) {
    const ScopedFaultHook hook(FailAt(point, nth));
    EXPECT_THAT(WriteFileAtomically(In("f"), "new"), IsDataLoss("planted"))
        << point << nth;
    EXPECT_THAT(ReadFile(In("f")), IsOkAndHolds("old")) << point << nth;
    EXPECT_THAT(Names(), ElementsAre("f")) << point << nth;
  }
}

TEST_F(FileTest, FailedFirstWriteLeavesNothing) {
  for (const auto& [point, nth] : std::vector<std::pair<std::string, int>>{
           {"file.write", 1}, {"file.rename", 1}, {"file.sync", 2}}) {
    const ScopedFaultHook hook(FailAt(point, nth));
    EXPECT_THAT(WriteFileAtomically(In("f"), "new"), IsDataLoss());
    EXPECT_THAT(Names(), IsEmpty()) << point << nth;
  }
}

TEST_F(FileTest, InjectedReadFailureIsReturned) {
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), "x"));
  for (const char* point : {"file.open", "file.read"}) {
    const ScopedFaultHook hook(FailAt(point, 1));
    EXPECT_THAT(ReadFile(In("f")), IsDataLoss());
  }
  const ScopedFaultHook hook(FailAt("file.open", 1));
  EXPECT_THAT(ListDirectory(root_), IsDataLoss());
}

TEST_F(FileTest, DirectoriesAreMadeListedAndRemoved) {
  RILL_ASSERT_OK(CreateDirectories(In("a/b/c")));
  RILL_ASSERT_OK(CreateDirectories(In("a/b/c")));
  RILL_ASSERT_OK(WriteFileAtomically(In("a/2"), ""));
  RILL_ASSERT_OK(WriteFileAtomically(In("a/10"), ""));
  EXPECT_TRUE(IsDirectory(In("a/b/c")));
  EXPECT_THAT(ListDirectory(In("a")),
              IsOkAndHolds(ElementsAre("10", "2", "b")));
  RILL_ASSERT_OK(RemoveAll(In("a")));
  EXPECT_FALSE(PathExists(In("a")));
  RILL_EXPECT_OK(RemoveAll(In("a")));
}

TEST_F(FileTest, DirectoryInThePlaceOfAFileIsRefused) {
  RILL_ASSERT_OK(WriteFileAtomically(In("f"), ""));
  EXPECT_THAT(CreateDirectories(In("f")), IsFailedPrecondition());
  EXPECT_THAT(CreateDirectories(In("f/g")), IsFailedPrecondition());
}

TEST_F(FileTest, RemoveAllDoesNotFollowLinks) {
  RILL_ASSERT_OK(CreateDirectories(In("kept")));
  RILL_ASSERT_OK(WriteFileAtomically(In("kept/f"), ""));
  RILL_ASSERT_OK(CreateDirectories(In("gone")));
  ASSERT_EQ(symlink(In("kept").c_str(), In("gone/link").c_str()), 0);
  RILL_ASSERT_OK(RemoveAll(In("gone")));
  EXPECT_THAT(Names(), ElementsAre("kept"));
  EXPECT_TRUE(PathExists(In("kept/f")));
}

TEST(JoinPathTest, PutsOneSlashBetween) {
  EXPECT_EQ(JoinPath("a", "b/c"), "a/b/c");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", ""), "a");
}

}  // namespace
}  // namespace rill
