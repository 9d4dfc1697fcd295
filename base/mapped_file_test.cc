// SPDX-License-Identifier: Apache-2.0
#include "rill/base/mapped_file.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

using Mode = MappedFile::Mode;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = FreshPath(); }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(path_)); }

  std::string path_;
};

TEST_F(MappedFileTest, WritesOfOneMappingAreSeenByAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(auto writer, MappedFile::Create(path_, 10000));
  RILL_ASSERT_OK_AND_ASSIGN(auto reader,
                            MappedFile::Open(path_, Mode::kReadOnly));
  EXPECT_TRUE(writer->is_writable());
  EXPECT_FALSE(reader->is_writable());
  EXPECT_EQ(reader->size_bytes(), 10000);
  EXPECT_EQ(reader->path(), path_);
  std::memcpy(writer->data() + 9990, "0123456789", 10);
  EXPECT_EQ(std::memcmp(reader->data() + 9990, "0123456789", 10), 0);
}

TEST_F(MappedFileTest, BytesStayInTheFile) {
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto file, MappedFile::Create(path_, 3));
    std::memcpy(file->data(), "abc", 3);
  }
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("abc"));
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto file,
                              MappedFile::Open(path_, Mode::kReadWrite));
    EXPECT_TRUE(file->is_writable());
    std::memcpy(file->data(), "xyz", 3);
  }
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("xyz"));
}

TEST_F(MappedFileTest, NewFileIsZeroAndItsSpaceIsReserved) {
  constexpr int64_t kBytes = 1 << 20;
  RILL_ASSERT_OK_AND_ASSIGN(auto file, MappedFile::Create(path_, kBytes));
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, kBytes);
  EXPECT_GE(info.st_blocks * 512, kBytes);
  EXPECT_THAT(std::string(reinterpret_cast<char*>(file->data()), kBytes),
              Each('\0'));
}

TEST_F(MappedFileTest, MoreThanTheDiskHasNamesAskedAndFreeAndLeavesNoFile) {
  struct statvfs fs;
  ASSERT_EQ(statvfs(::testing::TempDir().c_str(), &fs), 0);
  // As much again as the whole file system.
  const int64_t bytes =
      static_cast<int64_t>(fs.f_blocks) * static_cast<int64_t>(fs.f_frsize) * 2;
  const auto file = MappedFile::Create(path_, bytes);
  ASSERT_THAT(file, IsResourceExhausted(path_));
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr(absl::StrCat("asked ", bytes, " bytes")),
                    MatchesRegex(".*has [0-9]+ bytes free.*")));
  EXPECT_FALSE(PathExists(path_));
}

TEST_F(MappedFileTest, CreateRefusesAFileThatIsThere) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, "abc"));
  EXPECT_THAT(MappedFile::Create(path_, 100), IsFailedPrecondition(path_));
  EXPECT_THAT(ReadFile(path_), IsOkAndHolds("abc"));
}

TEST_F(MappedFileTest, CreateRefusesSizesBelowOne) {
  for (const int64_t bytes : {0, -1}) {
    EXPECT_THAT(MappedFile::Create(path_, bytes),
                IsInvalidArgument("want > 0"));
  }
}

TEST_F(MappedFileTest, ShorterFileThanExpectedIsDataLossWithBothSizes) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, "12345"));
  EXPECT_THAT(MappedFile::Open(path_, Mode::kReadOnly, 6),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("got 5 bytes"), HasSubstr("want 6"))));
}

TEST_F(MappedFileTest, LongerFileIsMappedUpToWhatIsExpected) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, "12345"));
  RILL_ASSERT_OK_AND_ASSIGN(auto file,
                            MappedFile::Open(path_, Mode::kReadOnly, 4));
  EXPECT_EQ(file->size_bytes(), 4);
}

TEST_F(MappedFileTest, EmptyFileHasNoData) {
  RILL_ASSERT_OK(WriteFileAtomically(path_, ""));
  RILL_ASSERT_OK_AND_ASSIGN(auto file,
                            MappedFile::Open(path_, Mode::kReadWrite));
  EXPECT_EQ(file->size_bytes(), 0);
  EXPECT_EQ(file->data(), nullptr);
}

TEST_F(MappedFileTest, OnlyRegularFilesAreOpened) {
  EXPECT_THAT(MappedFile::Open(path_, Mode::kReadOnly), IsNotFound(path_));
  RILL_ASSERT_OK(CreateDirectories(path_));
  EXPECT_THAT(MappedFile::Open(path_, Mode::kReadOnly), IsFailedPrecondition());
  RILL_ASSERT_OK(RemoveAll(path_));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::Open(path_, Mode::kReadOnly),
              IsFailedPrecondition("regular file"));
}

TEST_F(MappedFileTest, InjectedFailureLeavesNoFile) {
  for (const char* point : {"file.open", "file.reserve", "file.map"}) {
    const ScopedFaultHook hook(
        [&](absl::string_view reached, absl::string_view object) {
          return reached == point && object == path_
                     ? absl::ResourceExhaustedError("planted")
                     : absl::OkStatus();
        });
    EXPECT_THAT(MappedFile::Create(path_, 100),
                StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
    EXPECT_FALSE(PathExists(path_)) << point;
  }
}

TEST_F(MappedFileTest, InjectedFailureToOpenIsReturned) {
  RILL_ASSERT_OK_AND_ASSIGN(auto file, MappedFile::Create(path_, 100));
  const ScopedFaultHook hook("file.open", absl::DataLossError("planted"));
  EXPECT_THAT(MappedFile::Open(path_, Mode::kReadOnly), IsDataLoss("planted"));
}

}  // namespace
}  // namespace rill
