// SPDX-License-Identifier: Apache-2.0
// ReplaceDirectory and ReplaceFile of file.h.
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/status_macros.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace {

// Abilities of the file system besides a plain rename.
std::atomic<bool> has_rename_flags = true;
std::atomic<bool> has_links = true;

}  // namespace

// Both in the place of libc's.
extern "C" int renameat2(int from_directory, const char* from, int to_directory,
                         const char* to, unsigned int flags) noexcept {
  if (flags != 0 && !has_rename_flags) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(
      syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}

extern "C" int link(const char* from, const char* to) noexcept {
  if (!has_links) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace rill {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

// The parameter: whether the file system can exchange two names.
class ReplaceDirectoryTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    has_rename_flags = GetParam();
    root_ = FreshDirectory();
    path_ = JoinPath(root_, "d");
  }
  void TearDown() override {
    has_rename_flags = true;
    has_links = true;
    RILL_EXPECT_OK(RemoveAll(root_));
  }

  // Both files say `text`.
  absl::Status Replace(absl::string_view text) {
    return ReplaceDirectory(
        path_, [&](const std::string& fresh) -> absl::Status {
          RILL_RETURN_IF_ERROR(CreateDirectories(JoinPath(fresh, "sub")));
          RILL_RETURN_IF_ERROR(
              WriteFileAtomically(JoinPath(fresh, "sub/f"), text));
          return WriteFileAtomically(JoinPath(fresh, "f"), text);
        });
  }
  std::string Text(absl::string_view name) const {
    return ReadFile(JoinPath(path_, name)).value_or("none");
  }

  std::string root_, path_;
};

TEST_P(ReplaceDirectoryTest, MakesAndReplacesAWholeTree) {
  for (const char* text : {"one", "two"}) {
    RILL_ASSERT_OK(Replace(text));
    EXPECT_EQ(Text("f"), text);
    EXPECT_EQ(Text("sub/f"), text);
    EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
  }
}

TEST_P(ReplaceDirectoryTest, SlashAtTheEndChangesNothing) {
  path_ += "/";
  RILL_ASSERT_OK(Replace("one"));
  RILL_ASSERT_OK(Replace("two"));
  EXPECT_EQ(Text("f"), "two");
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
}

TEST_P(ReplaceDirectoryTest, FailedFillLeavesTheOldTree) {
  RILL_ASSERT_OK(Replace("old"));
  EXPECT_THAT(ReplaceDirectory(path_,
                               [](const std::string& fresh) {
                                 EXPECT_TRUE(IsDirectory(fresh));
                                 return absl::UnknownError("planted");
                               }),
              StatusIs(absl::StatusCode::kUnknown, "planted"));
  EXPECT_EQ(Text("f"), "old");
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
}

// Every fault point that a replacement reaches, one after the other.
TEST_P(ReplaceDirectoryTest, AnyFaultLeavesTheOldTreeAndNothingElse) {
  RILL_ASSERT_OK(Replace("old"));
  int reached = 0;
  for (int fail_at = 1;; ++fail_at) {
    absl::Status status;
    reached = 0;
    {
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        return ++reached == fail_at ? absl::DataLossError("planted")
                                    : absl::OkStatus();
      });
      status = Replace("new");
    }
    if (reached < fail_at) {  // Nothing failed.
      RILL_ASSERT_OK(status);
      break;
    }
    ASSERT_THAT(status, IsDataLoss()) << fail_at;
    ASSERT_EQ(Text("f"), "old") << fail_at;
    ASSERT_EQ(Text("sub/f"), "old") << fail_at;
    ASSERT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")))
        << fail_at;
  }
  EXPECT_EQ(Text("f"), "new");
  EXPECT_GE(reached, 15);  // Two files, their syncs and renames, the tree's.
}

TEST_P(ReplaceDirectoryTest, FileInItsPlaceIsRefused) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, "file"));
  EXPECT_THAT(Replace("new"), IsFailedPrecondition());
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("file"));
}

TEST_P(ReplaceDirectoryTest, ReaderAlwaysFindsAWholeTree) {
  if (!GetParam()) GTEST_SKIP() << "without an exchange there is a gap";
  RILL_ASSERT_OK(Replace("one"));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) RILL_EXPECT_OK(Replace(i % 2 ? "one" : "two"));
    stop = true;
  });
  while (!stop) {
    ASSERT_TRUE(IsDirectory(path_));
  }
  writer.join();
  EXPECT_THAT(Text("f"), AnyOf("one", "two"));
}

// Every fault point on the way of a file, one after the other.
TEST_P(ReplaceDirectoryTest, AFileIsReplacedWholeOrNotAtAll) {
  const auto replace = [&](absl::string_view text) {
    return ReplaceFile(path_, [&](const std::string& fresh) -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const auto file,
                            FileWriter::Create(fresh, text.size()));
      return file->Append(text);
    });
  };
  RILL_ASSERT_OK(replace("old"));
  int reached = 0;
  for (int fail_at = 1;; ++fail_at) {
    absl::Status status;
    reached = 0;
    {
      const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        return ++reached == fail_at ? absl::DataLossError("planted")
                                    : absl::OkStatus();
      });
      status = replace("other");
    }
    if (reached < fail_at) {
      RILL_ASSERT_OK(status);
      break;
    }
    ASSERT_THAT(status, IsDataLoss()) << fail_at;
    ASSERT_THAT(ReadFile(path_), IsOkAndHolds("old")) << fail_at;
    ASSERT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
  }
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("other"));
  EXPECT_GE(reached, 6);  // Open, reserve, write, two syncs, rename.
  RILL_ASSERT_OK(RemoveAll(path_));
  RILL_ASSERT_OK(CreateDirectories(path_));
  EXPECT_THAT(replace("new"), IsFailedPrecondition());
}

// Nothing keeps the old content there.
TEST_P(ReplaceDirectoryTest, AFileWithoutAWayBackSaysWhichContentIsThere) {
  has_links = false;
  RILL_ASSERT_OK(WriteFileAtomically(path_, "old"));
  const ScopedFaultHook hook(
      [&](absl::string_view point, absl::string_view object) {
        return point == "file.sync" && object == root_
                   ? absl::DataLossError("planted")
                   : absl::OkStatus();
      });
  const absl::Status status = WriteFileAtomically(path_, "new");
  EXPECT_THAT(status, IsDataLoss(GetParam() ? "planted" : "new content stays"));
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds(GetParam() ? "old" : "new"));
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutExchange, ReplaceDirectoryTest,
                         ::testing::Bool());

}  // namespace
}  // namespace rill
