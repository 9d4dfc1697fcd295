// SPDX-License-Identifier: Apache-2.0
#include "rill/base/process/child_process.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

absl::Time InAMinute() { return Clock::Steady().Now() + absl::Minutes(1); }

std::unique_ptr<ChildProcess> Shell(const std::string& command,
                                    std::vector<int> descriptors = {}) {
  return *ChildProcess::Start({.program = "/bin/sh",
                               .arguments = {"-c", command},
                               .descriptors = std::move(descriptors)});
}

TEST(ChildProcessTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto child, ChildProcess::Start(
                      {.program = "/bin/sh", .arguments = {"-c", "exit 3"}}));
  EXPECT_TRUE(child->WaitForEnd(InAMinute()));
  EXPECT_EQ(child->Kill(), "ended with exit status 3");
}

TEST(ChildProcessTest, SaysHowItEnded) {
  const auto signalled = Shell("kill -11 $$");
  EXPECT_TRUE(signalled->WaitForEnd(InAMinute()));
  EXPECT_EQ(signalled->Kill(), "ended by signal 11");
  const auto endless = Shell("while :; do sleep 60; done");
  EXPECT_FALSE(endless->WaitForEnd(Clock::Steady().Now()));
  EXPECT_EQ(endless->Kill(), "was killed");
  EXPECT_EQ(endless->Kill(), "was killed");
}

TEST(ChildProcessTest, GetsDescriptorsInOrderAlsoWhereTheirNumbersAreCrossed) {
  int first[2], second[2];
  ASSERT_EQ(pipe2(first, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(second, O_CLOEXEC), 0);
  const auto child = Shell("echo a >&3; echo b >&4", {second[1], first[1]});
  close(first[1]);
  close(second[1]);
  char byte = 0;
  EXPECT_EQ(read(first[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'b');
  EXPECT_EQ(read(second[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
  close(first[0]);
  close(second[0]);
}

TEST(ChildProcessTest, EndsWithWhatItStarted) {
  int life[2];
  ASSERT_EQ(pipe2(life, O_CLOEXEC), 0);
  // The grandchild holds the pipe's writing end; it says that it is there.
  auto child = Shell("(echo a >&3; exec sleep 600) & wait", {life[1]});
  close(life[1]);
  char byte = 0;
  ASSERT_EQ(read(life[0], &byte, 1), 1);
  ASSERT_EQ(read(life[0], &byte, 1), 1);
  child.reset();
  EXPECT_EQ(read(life[0], &byte, 1), 0);
  close(life[0]);
}

TEST(ChildProcessTest, IsFoundInPathAndHasItsEnvironmentAndOutput) {
  ASSERT_EQ(setenv("RILL_CHILD_TEST_A", "this process's", 1), 0);
  ASSERT_EQ(setenv("RILL_CHILD_TEST_B", "kept", 1), 0);
  int output[2];
  ASSERT_EQ(pipe2(output, O_CLOEXEC), 0);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto child,
      ChildProcess::Start(
          {.program = "sh",
           .arguments = {"-c",
                         "cat; echo $RILL_CHILD_TEST_A $RILL_CHILD_TEST_B; "
                         "env | grep -c RILL_CHILD_TEST_A= >&2"},
           .environment = {"RILL_CHILD_TEST_A=first", "RILL_CHILD_TEST_A=a"},
           .output = output[1]}));
  close(output[1]);
  std::string text;
  char bytes[256];
  ssize_t n = 0;
  while ((n = read(output[0], bytes, sizeof(bytes))) > 0) text.append(bytes, n);
  close(output[0]);
  EXPECT_EQ(text, "a kept\n1\n");
}

TEST(ChildProcessTest, OneThatLeftItsGroupIsEnded) {
  int life[2];
  ASSERT_EQ(pipe2(life, O_CLOEXEC), 0);
  const pid_t group = getpgrp();
  auto child = ChildProcess::Start(
      {.program = "python3",
       .arguments = {"-c", absl::StrCat("import os, time\n"
                                        "os.setpgid(0, ",
                                        group,
                                        ")\n"
                                        "os.write(3, b'a')\n"
                                        "time.sleep(600)\n")},
       .descriptors = {life[1]}});
  RILL_ASSERT_OK(child);
  close(life[1]);
  char byte = 0;
  ASSERT_EQ(read(life[0], &byte, 1), 1);
  EXPECT_EQ((*child)->Kill(), "was killed");
  EXPECT_EQ(read(life[0], &byte, 1), 0);
  close(life[0]);
}

TEST(ChildProcessTest, AProgramThatIsNotThereIsNamed) {
  EXPECT_THAT(ChildProcess::Start({.program = "/no/such/program"}),
              IsUnavailable("/no/such/program\": No such file"));
}

}  // namespace
}  // namespace rill
