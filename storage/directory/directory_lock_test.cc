// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/directory_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DirectoryLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = JoinPath(::testing::TempDir(), "lock");
    RILL_ASSERT_OK(RemoveAll(directory_));
    RILL_ASSERT_OK(CreateDirectories(directory_));
  }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(directory_)); }

  auto Acquire() const { return DirectoryLock::Acquire("Test", directory_); }
  static auto IsHeldBy(pid_t pid) {
    return IsFailedPrecondition(absl::StrCat("got process ", pid, ", want"));
  }

  // A process that takes the lock and waits.
  pid_t StartOwner() const {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto lock = Acquire();
      const char word = lock.ok() ? 'y' : 'n';
      if (write(ready[1], &word, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char word = 0;
    EXPECT_EQ(read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void Kill(pid_t child) {
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }

  std::string directory_;
};

TEST_F(DirectoryLockTest, OneHolderAtATimeAlsoInOneProcess) {
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto lock, Acquire());
    EXPECT_THAT(Acquire(), IsHeldBy(getpid()));
    EXPECT_THAT(Acquire().status().message(),
                AllOf(HasSubstr("Test: "), HasSubstr(directory_)));
  }
  RILL_EXPECT_OK(Acquire().status());
}

TEST_F(DirectoryLockTest, ASecondProcessIsToldWhoHasIt) {
  const pid_t owner = StartOwner();
  EXPECT_THAT(Acquire(), IsHeldBy(owner));
  EXPECT_THAT(Acquire(), IsHeldBy(owner));  // A refusal changed nothing.
  Kill(owner);
}

TEST_F(DirectoryLockTest, AKilledOwnerBlocksNobody) {
  for (int round = 0; round < 20; ++round) {
    const pid_t owner = StartOwner();
    EXPECT_THAT(Acquire(), IsHeldBy(owner));
    Kill(owner);
    RILL_EXPECT_OK(Acquire().status());
  }
}

TEST_F(DirectoryLockTest, WhatStandsInTheFileIsOnlyForTheMessage) {
  const std::string path = JoinPath(directory_, kLockFile);
  for (const absl::string_view text :
       {"", "nonsense", "-1", "99999999999999999999999999999999999999999"}) {
    RILL_ASSERT_OK(RemoveAll(path));
    RILL_ASSERT_OK(WriteFileAtomically(path, text));
    RILL_EXPECT_OK(Acquire().status());
  }
  RILL_ASSERT_OK(RemoveAll(path));
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  EXPECT_THAT(Acquire(), IsFailedPrecondition());
}

TEST_F(DirectoryLockTest, WithoutADirectoryOrWithAFaultThereIsNoLock) {
  EXPECT_THAT(DirectoryLock::Acquire("Test", JoinPath(directory_, "none")),
              IsNotFound());
  const ScopedFaultHook hook("file.lock", absl::UnavailableError("planted"));
  EXPECT_THAT(Acquire(), StatusIs(absl::StatusCode::kUnavailable, "planted"));
}

}  // namespace
}  // namespace rill::storage_internal
