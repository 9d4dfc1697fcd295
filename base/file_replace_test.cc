// SPDX-License-Identifier: Apache-2.0
// ReplaceDirectory and ReplaceFile of file.h.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/status_macros.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

class ReplaceDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    RILL_ASSERT_OK(RemoveAll(root_));
    RILL_ASSERT_OK(CreateDirectories(root_));
    path_ = JoinPath(root_, "d");
  }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(root_)); }

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

TEST_F(ReplaceDirectoryTest, MakesAndReplacesAWholeTree) {
  for (const char* text : {"one", "two"}) {
    RILL_ASSERT_OK(Replace(text));
    EXPECT_EQ(Text("f"), text);
    EXPECT_EQ(Text("sub/f"), text);
    EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
  }
}

TEST_F(ReplaceDirectoryTest, SlashAtTheEndChangesNothing) {
  path_ += "/";
  RILL_ASSERT_OK(Replace("one"));
  RILL_ASSERT_OK(Replace("two"));
  EXPECT_EQ(Text("f"), "two");
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
}

TEST_F(ReplaceDirectoryTest, FailedFillLeavesTheOldTree) {
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
TEST_F(ReplaceDirectoryTest, AnyFaultLeavesTheOldTreeAndNothingElse) {
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
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)) << fail_at;
    ASSERT_EQ(Text("f"), "old") << fail_at;
    ASSERT_EQ(Text("sub/f"), "old") << fail_at;
    ASSERT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")))
        << fail_at;
  }
  EXPECT_EQ(Text("f"), "new");
  EXPECT_GE(reached, 15);  // Two files, their syncs and renames, the tree's.
}

TEST_F(ReplaceDirectoryTest, FileInItsPlaceIsRefused) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, "file"));
  EXPECT_THAT(Replace("new"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("file"));
}

TEST_F(ReplaceDirectoryTest, ReaderAlwaysFindsAWholeTree) {
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
TEST_F(ReplaceDirectoryTest, AFileIsReplacedWholeOrNotAtAll) {
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
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)) << fail_at;
    ASSERT_THAT(ReadFile(path_), IsOkAndHolds("old")) << fail_at;
    ASSERT_THAT(ListDirectory(root_), IsOkAndHolds(ElementsAre("d")));
  }
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("other"));
  EXPECT_GE(reached, 6);  // Open, reserve, write, two syncs, rename.
  RILL_ASSERT_OK(RemoveAll(path_));
  RILL_ASSERT_OK(CreateDirectories(path_));
  EXPECT_THAT(replace("new"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace rill
