// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_loop.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/testing/hooked_env.h"
#include "rill/collectors/workers/worker.h"
#include "rill/collectors/workers/worker_board.h"
#include "rill/collectors/workers/worker_socket.h"
#include "rill/envs/cart_pole.h"
#include "rill/flow/channel/record_channel.h"
#include "rill/formats/spec_json.h"
#include "rill/specs/spec.h"
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

// A hang differs from a long batch by that.
TEST(WorkerLoopTest, TheBoardSaysWhenTheStepAtHandHasBegun) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto board, WorkerBoard::Create(1));
  RILL_ASSERT_OK_AND_ASSIGN(auto ends, WorkerSocket::MakePair());
  std::vector<absl::Time> begun;
  const WorkerFunction make =
      [&](const WorkerContext&) -> absl::StatusOr<WorkerParts> {
    WorkerParts parts;
    RILL_ASSIGN_OR_RETURN(parts.env, MakeCartPole({.lanes = 2}));
    parts.env = std::make_unique<HookedEnv>(std::move(parts.env), [&](int64_t) {
      begun.push_back(board->step_began(0));
    });
    return parts;
  };
  std::thread worker([&, socket = std::move(ends.second)]() mutable {
    RunWorker(std::move(socket), make);
  });
  WorkerSocket socket = std::move(ends.first);
  const auto send = [&](MessageKind kind, std::string bytes, int fd = -1) {
    RILL_EXPECT_OK(socket.Send(kind, bytes, absl::InfiniteFuture(), fd));
  };
  send(MessageKind::kBoard, Pack<int64_t>(1), board->fd());
  WorkerStart start = {};
  start.workers = 1;
  start.frames_per_batch = 20;
  start.max_frames_per_traj = -1;
  start.times_steps = true;
  send(MessageKind::kStart, Pack(start));
  const auto ready = *socket.Receive(absl::InfiniteFuture());
  ASSERT_EQ(ready->kind, MessageKind::kReady) << ready->bytes;
  const auto parts = *Unpack<WorkerReady>(ready->bytes);
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDictSpec spec,
      SpecFromJson(parts.second.substr(0, parts.first.spec_bytes)));
  RILL_ASSERT_OK_AND_ASSIGN(const auto channel,
                            RecordChannel::Create({.spec = spec}));
  send(MessageKind::kChannel, Pack<int64_t>(0), channel->fd());
  send(MessageKind::kCollect, Pack(WorkerAsk{.batches = 1, .round = 1}));
  const auto made = *socket.Receive(absl::InfiniteFuture());
  EXPECT_EQ(made->kind, MessageKind::kBatch);
  EXPECT_EQ(board->step_began(0), absl::InfiniteFuture());
  ASSERT_EQ(begun.size(), 10);
  EXPECT_LT(begun.front(), begun.back());
  EXPECT_LT(begun.back(), absl::InfiniteFuture());
  { const WorkerSocket closed = std::move(socket); }
  worker.join();
}

}  // namespace
}  // namespace rill::workers_internal
