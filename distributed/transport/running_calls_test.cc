// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/running_calls.h"

#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RunningCallsTest, NoCallBeginsBehindClose) {
  RunningCalls calls;
  EXPECT_TRUE(calls.Begin());
  calls.Close();
  EXPECT_FALSE(calls.Begin());
  EXPECT_THAT(calls.Await("here", absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("here"), HasSubstr("1 calls"))));
  calls.End();
  RILL_EXPECT_OK(calls.Await("here", absl::InfinitePast()));
}

TEST(RunningCallsTest, TheEndOfTheLastCallIsWaitedFor) {
  RunningCalls calls;
  ASSERT_TRUE(calls.Begin());
  ASSERT_TRUE(calls.Begin());
  std::thread call([&] {
    calls.End();
    calls.End();
  });
  RILL_EXPECT_OK(calls.Await("here", absl::InfiniteFuture()));
  call.join();
}

}  // namespace
}  // namespace rill
