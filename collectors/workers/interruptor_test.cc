// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/interruptor.h"

#include <fcntl.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

TEST(InterruptorTest, RoundsUpToOneAreInterruptedOnBothSides) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, Interruptor::Create());
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto worker,
      Interruptor::Attach(fcntl(collector->fd(), F_DUPFD_CLOEXEC, 0)));
  EXPECT_FALSE(worker->IsInterrupted(1));
  collector->Interrupt(3);
  EXPECT_TRUE(worker->IsInterrupted(2));
  EXPECT_TRUE(worker->IsInterrupted(3));
  EXPECT_FALSE(worker->IsInterrupted(4));
}

// A call that comes late must not take back a later one.
TEST(InterruptorTest, ALowerRoundChangesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto interruptor, Interruptor::Create());
  interruptor->Interrupt(3);
  interruptor->Interrupt(2);
  EXPECT_TRUE(interruptor->IsInterrupted(3));
}

TEST(InterruptorTest, AnotherFileIsRefused) {
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_THAT(Interruptor::Attach(fd),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::workers_internal
