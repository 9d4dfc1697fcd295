// SPDX-License-Identifier: Apache-2.0
// Callers and servers in processes of their own that are killed (SIGKILL): the
// others go on, and a place comes back.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/flow/channel/shared_calls.h"
#include "rill/testing/status_matchers.h"

namespace rill::channel_internal {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kForever = absl::InfiniteDuration();

std::shared_ptr<SharedCalls> Make(int64_t callers) {
  return *SharedCalls::Create({.callers = callers,
                               .question_bytes = sizeof(int64_t),
                               .answer_bytes = sizeof(int64_t)});
}

void Put(std::byte* to, int64_t value) {
  std::memcpy(to, &value, sizeof(value));
}

int64_t Get(const std::byte* from) {
  int64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

pid_t Fork(const std::function<int()>& run) {
  const pid_t pid = fork();
  if (pid == 0) _exit(run());
  return pid;
}

int StatusOf(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

void Kill(pid_t pid) {
  EXPECT_EQ(kill(pid, SIGKILL), 0);
  StatusOf(pid);
}

// Calls number 0, as often as it can.
pid_t ForkCaller(SharedCalls* calls, int64_t value) {
  return Fork([=] {
    if (!calls->Open(0).ok()) return 1;
    while (true) {
      Put(calls->question(0), value);
      if (!calls->Call(0).ok()) return 2;
    }
  });
}

TEST(SharedCallsKillTest, TheNextCallerOfAPlaceGetsNoAnswerOfADeadOne) {
  const auto calls = Make(1);
  const pid_t dead = ForkCaller(calls.get(), 5);
  std::vector<int64_t> who;
  RILL_ASSERT_OK(calls->AwaitQuestions(1, kForever, &who));
  Kill(dead);
  std::thread next([&] {
    ASSERT_TRUE(calls->Open(0).ok());
    Put(calls->question(0), 6);
    ASSERT_TRUE(calls->Call(0).ok());
    EXPECT_EQ(Get(calls->answer(0)), 12);
  });
  EXPECT_EQ(Get(calls->question(0)), 5);
  Put(calls->answer(0), 10);
  calls->Answer(0);
  RILL_ASSERT_OK(calls->AwaitQuestions(1, kForever, &who));
  Put(calls->answer(0), 2 * Get(calls->question(0)));
  calls->Answer(0);
  next.join();
}

TEST(SharedCallsKillTest, ADeadCallerIsNotWaitedFor) {
  const auto calls = Make(2);
  RILL_ASSERT_OK(calls->Open(1));
  const pid_t silent = Fork([&] {
    if (!calls->Open(0).ok()) return 1;
    Put(calls->question(1), 1);  // Tells that it is open.
    for (;;) pause();
  });
  while (Get(calls->question(1)) == 0) std::this_thread::yield();
  Kill(silent);
  std::vector<int64_t> who;
  std::thread asks([&] { EXPECT_TRUE(calls->Call(1).ok()); });
  RILL_ASSERT_OK(calls->AwaitQuestions(2, kForever, &who));
  EXPECT_THAT(who, ElementsAre(1));
  calls->Answer(1);
  asks.join();
}

TEST(SharedCallsKillTest, CallersThatAreKilledAtAnyTimeHoldNobodyUp) {
  const auto calls = Make(2);
  std::atomic<int64_t> served = 0;  // Of caller 0.
  std::thread server([&] {
    std::vector<int64_t> who;
    while (calls->AwaitQuestions(1, kForever, &who).ok()) {
      for (const int64_t caller : who) {
        Put(calls->answer(caller), 2 * Get(calls->question(caller)));
        calls->Answer(caller);
        served += caller == 0;
      }
    }
  });
  RILL_ASSERT_OK(calls->Open(1));
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t before = served;
    const pid_t pid = ForkCaller(calls.get(), i);
    // Every other one gets an answer first.
    for (int64_t k = 0; k < i || (i % 2 == 1 && served == before); ++k) {
      Put(calls->question(1), k);
      RILL_ASSERT_OK(calls->Call(1));
      ASSERT_EQ(Get(calls->answer(1)), 2 * k);
    }
    Kill(pid);
  }
  RILL_ASSERT_OK(calls->Open(0));
  Put(calls->question(0), 21);
  RILL_ASSERT_OK(calls->Call(0));
  EXPECT_EQ(Get(calls->answer(0)), 42);
  calls->Close();
  server.join();
}

TEST(SharedCallsKillTest, ACallerLearnsThatTheServersProcessHasGone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t server = Fork([&] {
    const auto calls = Make(1);
    ForkCaller(calls.get(), 5);
    std::vector<int64_t> who;
    if (!calls->AwaitQuestions(1, kForever, &who).ok()) return 1;
    if (write(ends[1], "x", 1) != 1) return 2;
    for (;;) pause();
  });
  char byte;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[1]);
  Kill(server);
  // The caller holds the pipe's other end until it ends.
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace rill::channel_internal
