// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/process_id.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace rill::channel_internal {
namespace {

TEST(ProcessIdTest, ThisProcessLivesAndNoProcessDoesNot) {
  const ProcessId mine = ProcessId::Mine();
  EXPECT_EQ(mine.pid(), getpid());
  EXPECT_TRUE(mine.IsAlive());
  EXPECT_EQ(ProcessId::OfWord(mine.word()), mine);
  EXPECT_FALSE(ProcessId().IsAlive());
  EXPECT_FALSE(ProcessId::OfWord(~uint64_t{0}).IsAlive());
}

TEST(ProcessIdTest, AnotherProcessOfTheSameNumberIsAnother) {
  const ProcessId mine = ProcessId::Mine();
  const ProcessId earlier =
      ProcessId::OfWord(mine.word() - (uint64_t{1} << 32));
  EXPECT_EQ(earlier.pid(), getpid());
  EXPECT_FALSE(earlier.IsAlive());
}

TEST(ProcessIdTest, AChildIsDeadOnceItEndedNotOnlyOnceItWasWaitedFor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t word = ProcessId::Mine().word();
    if (write(ends[1], &word, sizeof(word)) < 0) _exit(1);
    pause();
  }
  uint64_t word = 0;
  ASSERT_EQ(read(ends[0], &word, sizeof(word)),
            static_cast<ssize_t>(sizeof(word)));
  const ProcessId id = ProcessId::OfWord(word);
  EXPECT_EQ(id.pid(), child);
  EXPECT_TRUE(id.IsAlive());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(id.IsAlive());
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(id.IsAlive());
  close(ends[0]);
  close(ends[1]);
}

TEST(ProcessIdTest, AProcessWhoseFirstThreadEndedLives) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    static const uint64_t mine = ProcessId::Mine().word();
    static const int end = ends[1];
    std::thread([] {
      std::string state;
      while (state != "Z") {
        std::string skipped;
        std::ifstream("/proc/self/stat") >> skipped >> skipped >> state;
      }
      if (write(end, &mine, sizeof(mine)) < 0) _exit(1);
      pause();
    }).detach();
    syscall(SYS_exit, 0);  // This thread only.
  }
  uint64_t word = 0;
  ASSERT_EQ(read(ends[0], &word, sizeof(word)),
            static_cast<ssize_t>(sizeof(word)));
  EXPECT_TRUE(ProcessId::OfWord(word).IsAlive());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(ProcessId::OfWord(word).IsAlive());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace rill::channel_internal
