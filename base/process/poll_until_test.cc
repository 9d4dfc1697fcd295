// SPDX-License-Identifier: Apache-2.0
#include "rill/base/process/poll_until.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/fault_point.h"

namespace rill {
namespace {

TEST(PollUntilTest, CountsEntriesWithEventsAndEndsAtTheDeadline) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  pollfd entries[2] = {{ends[0], POLLIN, 0}, {-1, POLLIN, 0}};
  EXPECT_EQ(PollUntil(entries, absl::InfinitePast()), 0);
  const absl::Time deadline = Clock::Steady().Now() + absl::Milliseconds(3);
  EXPECT_EQ(PollUntil(entries, deadline), 0);
  EXPECT_GE(Clock::Steady().Now(), deadline);
  ASSERT_EQ(write(ends[1], "a", 1), 1);
  EXPECT_EQ(PollUntil(entries, absl::InfiniteFuture()), 1);
  EXPECT_EQ(entries[0].revents, POLLIN);
  close(ends[0]);
  close(ends[1]);
}

TEST(PollUntilTest, AnErrorOfTheSystemComesBackAtOnce) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit one = {.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one), 0);
  pollfd entries[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
  const int found =
      PollUntil(entries, Clock::Steady().Now() + absl::Milliseconds(3));
  const int error = errno;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(found, -1);
  EXPECT_EQ(error, EINVAL);
}

TEST(PollUntilTest, APlantedErrorIsOneOfMemory) {
  ScopedFaultHook hook([](absl::string_view point, absl::string_view entries) {
    return point == "process.poll" && entries == "1"
               ? absl::InternalError("planted")
               : absl::OkStatus();
  });
  pollfd entry = {-1, POLLIN, 0};
  EXPECT_EQ(PollUntil({&entry, 1}, absl::InfiniteFuture()), -1);
  EXPECT_EQ(errno, ENOMEM);
}

}  // namespace
}  // namespace rill
