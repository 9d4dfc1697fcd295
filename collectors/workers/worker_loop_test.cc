// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_loop.h"

#include <cstdint>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

// The worker stays, and answers each.
TEST(WorkerLoopTest, AMessageThatLacksItsDescriptorIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto ends, WorkerSocket::MakePair());
  std::thread worker([socket = std::move(ends.second)]() mutable {
    RunWorker(std::move(socket),
              [](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
                return absl::InternalError("no parts");
              });
  });
  for (const MessageKind kind :
       {MessageKind::kInference, MessageKind::kBoard}) {
    RILL_EXPECT_OK(
        ends.first.Send(kind, Pack<int64_t>(0), absl::InfiniteFuture()));
    const auto answer = ends.first.Receive(absl::InfiniteFuture());
    RILL_EXPECT_OK(answer.status());
    if (!answer.ok()) break;
    EXPECT_EQ((*answer)->kind, MessageKind::kRefused);
    EXPECT_THAT((*answer)->bytes,
                ::testing::EndsWith("a message without its descriptor"));
  }
  { const WorkerSocket closed = std::move(ends.first); }
  worker.join();
}

}  // namespace
}  // namespace rill::workers_internal
