// SPDX-License-Identifier: Apache-2.0
#include "rill/base/file_writer.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(FileWriterTest, AppendsAndOverwrites) {
  const std::string path = FreshPath("written");
  {
    RILL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileWriter> file,
                              FileWriter::Create(path, 10));
    EXPECT_THAT(FileSize(path), IsOkAndHolds(10));  // Reserved.
    RILL_ASSERT_OK(file->Append("????"));
    RILL_ASSERT_OK(file->Append("456789"));
    EXPECT_EQ(file->position(), 10);
    RILL_ASSERT_OK(file->Overwrite(0, "0123"));
  }
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("0123456789"));
}

TEST(FileWriterTest, StaysInsideTheAnnouncedSizeAndWhatWasAppended) {
  const std::string path = FreshPath("bounds");
  RILL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileWriter> file,
                            FileWriter::Create(path, 4));
  RILL_ASSERT_OK(file->Append("abc"));
  EXPECT_THAT(file->Append("de"), IsOutOfRange("got 2 bytes at 3"));
  EXPECT_THAT(file->Overwrite(2, "xy"), IsOutOfRange());
  EXPECT_THAT(file->Overwrite(-1, "x"), IsOutOfRange());
  RILL_ASSERT_OK(file->Append("d"));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("abcd"));
  EXPECT_THAT(FileWriter::Create(FreshPath("negative"), -1),
              IsInvalidArgument());
}

TEST(FileWriterTest, WhatExistsIsNotTouched) {
  const std::string path = FreshPath("there");
  RILL_ASSERT_OK(WriteFileAtomically(path, "old"));
  EXPECT_THAT(FileWriter::Create(path, 1), IsFailedPrecondition());
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("old"));
}

TEST(FileWriterTest, AFullDiskIsMetBeforeTheFirstByte) {
  const std::string path = FreshPath("full");
  const ScopedFaultHook hook("file.reserve",
                             absl::ResourceExhaustedError("full"));
  EXPECT_THAT(FileWriter::Create(path, 4), IsResourceExhausted());
  EXPECT_FALSE(PathExists(path));
}

TEST(FileWriterTest, MoreThanTheDiskHasIsRefused) {
  const std::string path = FreshPath("huge");
  EXPECT_THAT(FileWriter::Create(path, int64_t{1} << 60),
              IsResourceExhausted("asked 1152921504606846976 bytes"));
  EXPECT_FALSE(PathExists(path));
}

}  // namespace
}  // namespace rill
