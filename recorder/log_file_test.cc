// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/log_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill::recorder_internal {
namespace {

std::string NewPath(absl::string_view name) {
  return ::testing::TempDir() + "/" + std::string(name);
}

TEST(LogFileTest, HoldsWhatWasAppendedAcrossItsSteps) {
  const std::string path = NewPath("across");
  std::string all;
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto file, LogFile::Create(path));
    for (int i = 0; static_cast<int64_t>(all.size()) < 2 * LogFile::kStep + 9;
         ++i) {
      const std::string piece(1 + i % 70'001, static_cast<char>('a' + i % 26));
      RILL_EXPECT_OK(file->Append(piece));
      all += piece;
    }
    EXPECT_EQ(file->size_bytes(), all.size());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(path, 1 << 24));
  EXPECT_TRUE(read == all);
}

TEST(LogFileTest, HoldsItWhenItsProcessIsKilledTheInstantAfter) {
  const std::string path = NewPath("killed");
  const pid_t child = fork();
  if (child == 0) {
    const auto file = LogFile::Create(path);
    if (file.ok() && (*file)->Append("all of it").ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(path, 1 << 24));
  EXPECT_EQ(read.substr(0, 9), "all of it");
  EXPECT_EQ(read.find_first_not_of('\0', 9), std::string::npos);
}

TEST(LogFileTest, AFileThatExistsIsRefused) {
  const std::string path = NewPath("exists");
  RILL_EXPECT_OK(LogFile::Create(path));
  EXPECT_THAT(LogFile::Create(path),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(LogFileTest, AFullDiskIsAnErrorAndLeavesNoFile) {
  const std::string path = NewPath("full");
  for (const absl::string_view fails : {"file.open", "file.reserve"}) {
    const ScopedFaultHook hook([=](absl::string_view point, absl::string_view) {
      return point == fails ? absl::ResourceExhaustedError("full")
                            : absl::OkStatus();
    });
    EXPECT_THAT(LogFile::Create(path),
                StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_FALSE(PathExists(path));
  }
}

TEST(LogFileTest, WhatCannotBeMappedIsNotThere) {
  const std::string path = NewPath("unmapped");
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto file, LogFile::Create(path));
    {
      const ScopedFaultHook hook(
          [](absl::string_view point, absl::string_view) {
            return point == "file.map"
                       ? absl::ResourceExhaustedError("no addresses")
                       : absl::OkStatus();
          });
      EXPECT_THAT(file->Append("lost"),
                  StatusIs(absl::StatusCode::kResourceExhausted));
    }
    RILL_EXPECT_OK(file->Append("there"));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(path, 1 << 24));
  EXPECT_EQ(read, "there");
}

TEST(LogFileTest, ADiskThatFillsKeepsWhatIsThere) {
  const std::string path = NewPath("fills");
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto file, LogFile::Create(path));
    RILL_EXPECT_OK(file->Append("before"));
    const ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      return point == "file.reserve" ? absl::ResourceExhaustedError("full")
                                     : absl::OkStatus();
    });
    EXPECT_THAT(file->Append(std::string(LogFile::kStep, 'x')),
                StatusIs(absl::StatusCode::kResourceExhausted));
    RILL_EXPECT_OK(file->Append(" and after"));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const std::string read, ReadFile(path, 1 << 24));
  EXPECT_EQ(read, "before and after");
}

}  // namespace
}  // namespace rill::recorder_internal
