// SPDX-License-Identifier: Apache-2.0
#include "rill/base/sparse_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "rill/testing/small_disk.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

using Mode = SparseFile::Mode;

constexpr int64_t kMiB = int64_t{1} << 20;

class SparseFileTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = FreshPath(); }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(path_)); }

  std::string path_;
};

int64_t BytesOnDisk(const std::string& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_blocks * 512;
}

TEST_F(SparseFileTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(4 * kMiB));
  RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path_, 4 * kMiB));
  RILL_ASSERT_OK(file->Map(*range, 0));
  RILL_ASSERT_OK(file->Reserve(0, kMiB));
  range->data()[0] = std::byte{'x'};
  RILL_EXPECT_OK(file->Sync());
  EXPECT_THAT(FileSize(path_), IsOkAndHolds(4 * kMiB));
  EXPECT_GE(BytesOnDisk(path_), kMiB);
  EXPECT_LT(BytesOnDisk(path_), 2 * kMiB);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string content, ReadFile(path_));
  EXPECT_EQ(content[0], 'x');
  EXPECT_THAT(content.substr(1, 100), Each('\0'));
}

TEST_F(SparseFileTest, FilesLieSideBySideInOneRange) {
  const int64_t page = AddressRange::PageBytes();
  RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(2 * page + 10));
  RILL_ASSERT_OK_AND_ASSIGN(auto first, SparseFile::Create(path_, page + 1));
  const std::string other = absl::StrCat(path_, ".2");
  RILL_ASSERT_OK(RemoveAll(other));
  RILL_ASSERT_OK_AND_ASSIGN(auto second, SparseFile::Create(other, 10));
  RILL_ASSERT_OK(first->Map(*range, 0));
  RILL_ASSERT_OK(second->Map(*range, 2 * page));
  RILL_ASSERT_OK(first->Reserve(0, page + 1));
  RILL_ASSERT_OK(second->Reserve(0, 10));
  std::memcpy(range->data() + page, "1", 1);
  std::memcpy(range->data() + 2 * page, "0123456789", 10);
  EXPECT_THAT(ReadFile(other), IsOkAndHolds("0123456789"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string content, ReadFile(path_));
  EXPECT_EQ(content[page], '1');
  const auto refused = IsInvalidArgument("multiple of");
  EXPECT_THAT(second->Map(*range, 1), refused);
  EXPECT_THAT(second->Map(*range, -page), refused);
  EXPECT_THAT(second->Map(*range, 3 * page), refused);
  EXPECT_THAT(first->Map(*range, 2 * page), refused);
  RILL_EXPECT_OK(RemoveAll(other));
}

TEST_F(SparseFileTest, OpenWantsThatFileInThatSize) {
  EXPECT_THAT(SparseFile::Open(path_, 5, Mode::kReadOnly), IsNotFound(path_));
  RILL_ASSERT_OK(WriteFileAtomically(path_, "12345"));
  RILL_EXPECT_OK(SparseFile::Open(path_, 5, Mode::kReadOnly).status());
  for (const int64_t bytes : {4, 6}) {
    EXPECT_THAT(SparseFile::Open(path_, bytes, Mode::kReadWrite),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("got 5 bytes"),
                               HasSubstr(absl::StrCat("want ", bytes)))));
  }
  const std::string link = absl::StrCat(path_, ".link");
  RILL_ASSERT_OK(RemoveAll(link));
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_THAT(SparseFile::Open(link, 5, Mode::kReadWrite),
              IsFailedPrecondition());
  RILL_EXPECT_OK(RemoveAll(link));
  RILL_ASSERT_OK(RemoveAll(path_));
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(SparseFile::Open(path_, 5, Mode::kReadOnly),
              IsFailedPrecondition());
}

TEST_F(SparseFileTest, BadSizesAndPiecesAreRefused) {
  EXPECT_THAT(SparseFile::Create(path_, 0), IsInvalidArgument());
  EXPECT_THAT(AddressRange::Create(-1), IsInvalidArgument());
  RILL_ASSERT_OK_AND_ASSIGN(const auto empty, AddressRange::Create(0));
  EXPECT_EQ(empty->size_bytes(), 0);
  EXPECT_THAT(AddressRange::Create(INT64_MAX), IsResourceExhausted());
  RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path_, 100));
  EXPECT_THAT(SparseFile::Create(path_, 100), IsFailedPrecondition());
  for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>(-1, 1),
                                      {0, -1},
                                      {0, 101},
                                      {100, 1},
                                      {INT64_MAX, 1},
                                      {1, INT64_MAX}}) {
    EXPECT_THAT(file->Reserve(offset, bytes), IsInvalidArgument());
    EXPECT_THAT(file->Zero(offset, bytes), IsInvalidArgument());
  }
  RILL_EXPECT_OK(file->Reserve(100, 0));
}

TEST_F(SparseFileTest, ReservingKeepsWhatIsStored) {
  RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(4 * kMiB));
  RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path_, 4 * kMiB));
  RILL_ASSERT_OK(file->Map(*range, 0));
  EXPECT_LT(file->DiskBytes(), kMiB);
  for (const int64_t at : {kMiB / 2, 2 * kMiB, 3 * kMiB}) {
    RILL_ASSERT_OK(file->Reserve(at, 10));
    std::memcpy(range->data() + at, "0123456789", 10);
  }
  RILL_ASSERT_OK(file->Reserve(0, 4 * kMiB));
  RILL_ASSERT_OK(file->Reserve(0, 4 * kMiB));
  EXPECT_GE(BytesOnDisk(path_), 4 * kMiB);
  EXPECT_EQ(file->DiskBytes(), BytesOnDisk(path_));
  for (const int64_t at : {kMiB / 2, 2 * kMiB, 3 * kMiB}) {
    EXPECT_EQ(std::memcmp(range->data() + at, "0123456789", 10), 0);
    EXPECT_EQ(range->data()[at + 10], std::byte{0});
  }
}

// Short and long pieces, around holes, on a disk's file system.
TEST_F(SparseFileTest, ZerosAreJustWhereTheyWereAskedForAndStayReserved) {
  for (const auto& [first, bytes] : {std::pair<int64_t, int64_t>(100, 10),
                                     {5000, 123'457},
                                     {kMiB - 1, kMiB + 2},
                                     {0, 4 * kMiB},
                                     {7, 0}}) {
    // Anew: reserved space that was read looks like data.
    RILL_ASSERT_OK(RemoveAll(path_));
    RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(4 * kMiB));
    RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path_, 4 * kMiB));
    RILL_ASSERT_OK(file->Map(*range, 0));
    // A hole between them, and reserved space behind the second.
    RILL_ASSERT_OK(file->Reserve(0, kMiB + kMiB / 2));
    RILL_ASSERT_OK(file->Reserve(2 * kMiB, kMiB + kMiB / 4));
    std::memset(range->data(), 'a', kMiB + kMiB / 2);
    std::memset(range->data() + 2 * kMiB, 'a', kMiB);
    RILL_ASSERT_OK(file->Sync());  // Written back, as rows may be or not.
    std::memset(range->data(), 'a', kMiB);
    std::string want(4 * kMiB, '\0');
    want.replace(0, kMiB + kMiB / 2, kMiB + kMiB / 2, 'a');
    want.replace(2 * kMiB, kMiB, kMiB, 'a');
    want.replace(first, bytes, bytes, '\0');
    RILL_ASSERT_OK(file->Zero(first, bytes));
    EXPECT_TRUE(ReadFile(path_).value() == want) << first;
    EXPECT_EQ(std::memcmp(range->data(), want.data(), want.size()), 0) << first;
    // A file system may need some more to say which are zeros.
    EXPECT_GE(BytesOnDisk(path_), 3 * kMiB - kMiB / 4);
    EXPECT_LT(BytesOnDisk(path_), 3 * kMiB + kMiB / 4);
  }
}

// A memory file system cannot zero without writing.
TEST_F(SparseFileTest, ZerosOnAFullDiskNeedNoRoom) {
  RunOnSmallDisk(kMiB, [](const std::string& disk) {
    const std::string path = JoinPath(disk, "sparse");
    RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(8 * kMiB));
    RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path, 8 * kMiB));
    RILL_ASSERT_OK(file->Map(*range, 0));
    RILL_ASSERT_OK(file->Reserve(0, kMiB / 2));
    std::memset(range->data(), 'a', kMiB / 2);
    ASSERT_FALSE(
        WriteFileAtomically(JoinPath(disk, "rest"), std::string(kMiB, 'r'))
            .ok());
    RILL_ASSERT_OK(file->Zero(0, 8 * kMiB));
    for (int64_t i = 0; i < kMiB / 2; ++i) {
      ASSERT_EQ(range->data()[i], std::byte{0}) << i;
    }
    std::memset(range->data(), 'b', kMiB / 2);
  });
}

TEST_F(SparseFileTest, FullDiskNamesBothSidesKeepsRowsAndGivesBackTheRest) {
  RunOnSmallDisk(kMiB, [](const std::string& disk) {
    const std::string path = JoinPath(disk, "sparse");
    RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(8 * kMiB));
    RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path, 8 * kMiB));
    RILL_ASSERT_OK(file->Map(*range, 0));
    constexpr int64_t kAt = 3 * kMiB;
    RILL_ASSERT_OK(file->Reserve(kAt, kMiB / 2));
    std::memset(range->data() + kAt, 'a', kMiB / 4);
    const int64_t before = BytesOnDisk(path);
    // Around what is stored: holes on both sides of it, neither fits.
    const absl::Status status = file->Reserve(kAt - kMiB / 4, 4 * kMiB);
    EXPECT_THAT(status, IsResourceExhausted());
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("asked ", 4 * kMiB, " bytes")),
                      MatchesRegex(".*has [0-9]+ bytes free.*")));
    EXPECT_LE(BytesOnDisk(path), before);
    for (int64_t i = 0; i < kMiB / 4; ++i) {
      ASSERT_EQ(range->data()[kAt + i], std::byte{'a'}) << i;
    }
    // Rows that are stored can be written, and there is space again.
    std::memset(range->data() + kAt, 'b', kMiB / 4);
    RILL_EXPECT_OK(file->Reserve(0, kMiB / 4));
  });
}

// Data outside of the range look like space of the range, so that the failure
// comes with the second hole.
TEST_F(SparseFileTest, WhatAFailedReserveHadGotIsGivenBack) {
  RunOnSmallDisk(kMiB, [](const std::string& disk) {
    const std::string path = JoinPath(disk, "sparse");
    RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(8 * kMiB));
    RILL_ASSERT_OK_AND_ASSIGN(auto file, SparseFile::Create(path, 8 * kMiB));
    RILL_ASSERT_OK(file->Map(*range, 0));
    for (const auto& [at, bytes] :
         {std::pair<int64_t, int64_t>(7 * kMiB, kMiB / 2), {kMiB / 4, 10}}) {
      RILL_ASSERT_OK(file->Reserve(at, bytes));
      std::memset(range->data() + at, 'a', bytes);
    }
    const int64_t before = BytesOnDisk(path);
    EXPECT_THAT(file->Reserve(0, 3 * kMiB / 4), IsResourceExhausted());
    EXPECT_EQ(BytesOnDisk(path), before);
  });
}

// Pages that are reserved and not written yet look like holes.
TEST_F(SparseFileTest, WhatIsReservedIsReservedAgainOnAFullDisk) {
  RunOnSmallDisk(kMiB, [](const std::string& disk) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto file, SparseFile::Create(JoinPath(disk, "sparse"), kMiB));
    RILL_ASSERT_OK(file->Reserve(0, kMiB));
    RILL_EXPECT_OK(file->Reserve(0, kMiB));
    RILL_EXPECT_OK(file->Reserve(kMiB / 2, kMiB / 4));
  });
}

TEST_F(SparseFileTest, InjectedFailuresChangeNothing) {
  for (const char* point :
       {"file.open", "file.reserve", "file.map", "file.zero", "file.sync"}) {
    RILL_ASSERT_OK(RemoveAll(path_));
    const ScopedFaultHook hook(
        [&](absl::string_view reached, absl::string_view object) {
          return reached == point && object == path_
                     ? absl::ResourceExhaustedError("planted")
                     : absl::OkStatus();
        });
    const auto planted =
        StatusIs(absl::StatusCode::kResourceExhausted, "planted");
    auto file = SparseFile::Create(path_, kMiB);
    if (absl::string_view(point) == "file.open") {
      EXPECT_THAT(file, planted);
      EXPECT_FALSE(PathExists(path_));
      continue;
    }
    RILL_ASSERT_OK(file.status());
    RILL_ASSERT_OK_AND_ASSIGN(auto range, AddressRange::Create(kMiB));
    absl::Status status = (*file)->Map(*range, 0);
    if (status.ok()) status = (*file)->Reserve(0, kMiB);
    if (status.ok()) status = (*file)->Zero(0, kMiB);
    if (status.ok()) status = (*file)->Sync();
    EXPECT_THAT(status, planted) << point;
    if (absl::string_view(point) == "file.reserve") {
      EXPECT_EQ(BytesOnDisk(path_), 0);
    }
  }
}

TEST_F(SparseFileTest, InjectedFailureToOpenIsReturned) {
  RILL_ASSERT_OK(SparseFile::Create(path_, kMiB).status());
  const ScopedFaultHook hook("file.open", absl::DataLossError("planted"));
  EXPECT_THAT(SparseFile::Open(path_, kMiB, SparseFile::Mode::kReadOnly),
              StatusIs(absl::StatusCode::kDataLoss, "planted"));
}

}  // namespace
}  // namespace rill
