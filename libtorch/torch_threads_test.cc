// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/torch_threads.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/process_traces.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// An operation that torch splits where it may.
void Compute() { EXPECT_GT(at::ones({1 << 20}).exp().sum().item<float>(), 0); }

size_t ThreadsOfThisProcess() { return NamesIn("/proc/self/task").size(); }

// How many threads an operation starts in a new thread.
size_t StartedByANewThread() {
  size_t started = 0;
  std::thread([&] {
    const size_t before = ThreadsOfThisProcess();
    Compute();
    started = ThreadsOfThisProcess() - before;
  }).join();
  return started;
}

int ThreadsOfANewThread() {
  int threads = 0;
  std::thread([&] { threads = at::get_num_threads(); }).join();
  return threads;
}

TEST(TorchThreadsTest, ACallersOperationsAreSplitAndThoseOfNewThreadsAreNot) {
  RILL_ASSERT_OK(SetTorchThreads(3));
  const size_t before = ThreadsOfThisProcess();
  Compute();
  EXPECT_EQ(ThreadsOfThisProcess(), before + 2);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(ThreadsOfANewThread(), 1);
  EXPECT_EQ(StartedByANewThread(), 0);

  // A worker thread that says so itself takes nothing from the learner.
  std::thread([] {
    RILL_EXPECT_OK(SetTorchThreads(1));
    EXPECT_EQ(at::get_num_threads(), 1);
  }).join();
  EXPECT_EQ(at::get_num_threads(), 3);

  RILL_ASSERT_OK(SetTorchThreads(2));
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_EQ(ThreadsOfANewThread(), 1);
}

// Without it the child waits for ever.
TEST(TorchThreadsTest, AForkedChildComputesAlone) {
  RILL_ASSERT_OK(SetTorchThreads(3));
  Compute();
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const bool is_set = SetTorchThreads(1).ok();
    Compute();
    _exit(is_set ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
}

TEST(TorchThreadsTest, NumbersOutOfRangeAreRefused) {
  for (const int number : {0, -1, 1025}) {
    EXPECT_THAT(SetTorchThreads(number),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("threads: got")));
  }
}

}  // namespace
}  // namespace rill
