// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/child_watch.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/process/child_process.h"
#include "rill/testing/status_matchers.h"

namespace rill::gymnasium_internal {
namespace {

using ::testing::ElementsAre;

std::vector<int> ProcessorsOf(pid_t pid) {
  std::vector<int> processors;
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(pid, sizeof(set), &set), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

void Confine(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int i : processors) CPU_SET(i, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

// The test has two processors.
class ChildWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (before_.size() < 2) GTEST_SKIP() << "wants two processors";
    Confine({before_[0], before_[1]});
  }
  void TearDown() override { Confine(before_); }

  int first() const { return before_[0]; }
  int second() const { return before_[1]; }

  // Two children, and the host.
  std::atomic<int32_t> memory_[3] = {};
  std::byte* bytes() { return reinterpret_cast<std::byte*>(memory_); }

 private:
  const std::vector<int> before_ = ProcessorsOf(0);
};

TEST_F(ChildWatchTest, ChildrenHaveProcessorsOfTheirOwnWhereThereAreEnough) {
  const auto placed = [](int64_t children, int64_t child, bool may_pin = true) {
    auto process =
        ChildProcess::Start({.program = "sleep", .arguments = {"600"}});
    RILL_EXPECT_OK(process.status());
    if (!process.ok()) return std::vector<int>();
    ChildWatch(children, may_pin).Place(child, (*process)->pid());
    return ProcessorsOf((*process)->pid());
  };
  EXPECT_THAT(placed(2, 0), ElementsAre(first()));
  EXPECT_THAT(placed(2, 1), ElementsAre(second()));
  EXPECT_THAT(placed(1, 0), ElementsAre(first(), second()));
  EXPECT_THAT(placed(3, 0), ElementsAre(first(), second()));
  EXPECT_THAT(placed(2, 1, /*may_pin=*/false), ElementsAre(first(), second()));
}

TEST_F(ChildWatchTest, IsOffForOneChildForMoreThanProcessorsAndWithoutPinning) {
  for (const int64_t children : {1, 2, 3}) {
    std::atomic<int32_t> memory[4] = {};
    ChildWatch watch(children, /*may_pin=*/children != 2);
    watch.Bind(reinterpret_cast<std::byte*>(memory));
    watch.BeginStep();
    EXPECT_EQ(memory[children], ChildWatch::kOff);
    memory[0] = ChildWatch::kDone;
    EXPECT_FALSE(watch.IsNear());
  }
}

TEST_F(ChildWatchTest, LooksAgainWhenOnlyOthersThanTheHostWork) {
  ChildWatch watch(2, /*may_pin=*/true);
  watch.Bind(bytes());
  EXPECT_EQ(memory_[2], ChildWatch::kAwake);
  Confine({second()});
  memory_[0] = memory_[1] = ChildWatch::kDone;
  watch.BeginStep();
  EXPECT_EQ(memory_[2], 1);
  EXPECT_EQ(memory_[0], ChildWatch::kCalled);
  // Child 1 waits for the processor that this thread has.
  memory_[0] = ChildWatch::kDone;
  EXPECT_FALSE(watch.IsNear());
  memory_[1] = ChildWatch::kWorks;
  EXPECT_FALSE(watch.IsNear());
  EXPECT_EQ(memory_[2], 1);
  memory_[0] = ChildWatch::kWorks;
  memory_[1] = ChildWatch::kDone;
  EXPECT_TRUE(watch.IsNear());
  EXPECT_EQ(memory_[2], ChildWatch::kAwake);
  // Not for ever.
  while (watch.IsNear()) continue;
  watch.BeginStep();
  EXPECT_EQ(memory_[2], 1);
}

}  // namespace
}  // namespace rill::gymnasium_internal
