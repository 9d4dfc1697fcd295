// SPDX-License-Identifier: Apache-2.0
#include "rill/base/fault_point.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

TEST(FaultPointTest, IsOkWithoutAHook) {
  RILL_EXPECT_OK(FaultPoint("file.open", "a"));
}

TEST(FaultPointTest, HookSeesNameAndObjectAndDecides) {
  std::vector<std::string> seen;
  const ScopedFaultHook hook([&](absl::string_view point,
                                 absl::string_view object) {
    seen.push_back(absl::StrCat(point, " ", object));
    return object == "bad" ? absl::DataLossError("planted") : absl::OkStatus();
  });
  RILL_EXPECT_OK(FaultPoint("file.open", "good"));
  EXPECT_THAT(FaultPoint("file.write", "bad"),
              StatusIs(absl::StatusCode::kDataLoss, "planted"));
  EXPECT_THAT(seen, ElementsAre("file.open good", "file.write bad"));
}

TEST(FaultPointTest, HookOfOnePointLeavesTheOthersAlone) {
  const ScopedFaultHook hook("file.open", absl::DataLossError("planted"));
  EXPECT_THAT(FaultPoint("file.open", "a"), IsDataLoss("planted"));
  RILL_EXPECT_OK(FaultPoint("file.write", "a"));
}

TEST(FaultPointTest, HookEndsWithItsScopeAndTheOuterOneIsBack) {
  const ScopedFaultHook outer([](absl::string_view, absl::string_view) {
    return absl::UnknownError("outer");
  });
  {
    const ScopedFaultHook inner([](absl::string_view, absl::string_view) {
      return absl::UnknownError("inner");
    });
    EXPECT_EQ(FaultPoint("p", "o").message(), "inner");
  }
  EXPECT_EQ(FaultPoint("p", "o").message(), "outer");
}

TEST(FaultPointTest, HookReachesNoFaultPointItself) {
  int calls = 0;
  const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
    ++calls;
    return FaultPoint("inside", "hook");
  });
  RILL_EXPECT_OK(FaultPoint("p", "o"));
  EXPECT_EQ(calls, 1);
}

TEST(FaultPointTest, ThreadsReachAHookWhileItComesAndGoes) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) FaultPoint("p", "o").IgnoreError();
    });
  }
  for (int i = 0; i < 500; ++i) {
    // Dies at the end of the round; a call after that would touch `calls`.
    std::atomic<int> calls = 0;
    const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
      ++calls;
      return absl::OkStatus();
    });
    FaultPoint("p", "o").IgnoreError();
    EXPECT_GE(calls, 1);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rill
