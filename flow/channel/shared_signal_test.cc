// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/shared_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/testing/status_matchers.h"

namespace {

std::atomic<bool> is_set_back = false;
std::atomic<int64_t> times_set_back = 0;

}  // namespace

// In the place of libc's. The machine's clock goes back by an hour at each
// reading, where a test wants that.
extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, id, time));
  if (id == CLOCK_REALTIME && is_set_back) {
    time->tv_sec -= 3600 * ++times_set_back;
  }
  return result;
}

namespace rill::channel_internal {
namespace {

TEST(SharedSignalTest, AClockThatIsSetBackDelaysNeitherLooksNorTheDeadline) {
  constexpr int kMostCalls = 100;  // A wait that hangs ends too.
  SharedSignal signal = {};
  int calls = 0;
  int looks = 0;
  is_set_back = true;
  const absl::Time before = Clock::System().Now();
  const absl::Time after = Clock::System().Now();
  const absl::Status status = signal.Await(
      2 * SharedSignal::kLookAfter, [&](bool look) -> absl::StatusOr<bool> {
        looks += look ? 1 : 0;
        return ++calls == kMostCalls;
      });
  is_set_back = false;
  EXPECT_LT(after, before);
  EXPECT_THAT(status, IsDeadlineExceeded());
  EXPECT_GT(looks, 0);
}

}  // namespace
}  // namespace rill::channel_internal
