// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_board.h"

#include <fcntl.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

TEST(WorkerBoardTest, RoundsUpToOneAreInterruptedOnBothSides) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector, WorkerBoard::Create(1));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto worker,
      WorkerBoard::Attach(fcntl(collector->fd(), F_DUPFD_CLOEXEC, 0), 1));
  EXPECT_FALSE(worker->IsInterrupted(1));
  collector->Interrupt(3);
  EXPECT_TRUE(worker->IsInterrupted(2));
  EXPECT_TRUE(worker->IsInterrupted(3));
  EXPECT_FALSE(worker->IsInterrupted(4));
}

// A call that comes late must not take back a later one.
TEST(WorkerBoardTest, ALowerRoundChangesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto board, WorkerBoard::Create(1));
  board->Interrupt(3);
  board->Interrupt(2);
  EXPECT_TRUE(board->IsInterrupted(3));
}

TEST(WorkerBoardTest, WhatAWorkerWritesIsItsOwn) {
  constexpr int64_t kWorkers = 100;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            WorkerBoard::Create(kWorkers));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto worker,
      WorkerBoard::Attach(fcntl(collector->fd(), F_DUPFD_CLOEXEC, 0),
                          kWorkers));
  for (int64_t w = 0; w < kWorkers; ++w) {
    EXPECT_EQ(collector->step_began(w), absl::InfiniteFuture());
    worker->BeginStep(w, absl::FromUnixSeconds(5 + w));
    worker->NoteMemory(w, w % 3 == 0);
  }
  for (int64_t w = 0; w < kWorkers; ++w) {
    EXPECT_EQ(collector->step_began(w), absl::FromUnixSeconds(5 + w));
    EXPECT_EQ(collector->HasNoMemory(w), w % 3 == 0);
    if (w % 2 == 0) {
      worker->EndSteps(w);
    } else {
      collector->Begin(w);
      EXPECT_FALSE(worker->HasNoMemory(w));
    }
    EXPECT_EQ(collector->step_began(w), absl::InfiniteFuture());
  }
  EXPECT_FALSE(collector->IsInterrupted(1));
}

TEST(WorkerBoardTest, AnotherFileIsRefused) {
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_THAT(WorkerBoard::Attach(fd, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_ASSERT_OK_AND_ASSIGN(const auto small, WorkerBoard::Create(1));
  EXPECT_THAT(WorkerBoard::Attach(fcntl(small->fd(), F_DUPFD_CLOEXEC, 0), 4096),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::workers_internal
