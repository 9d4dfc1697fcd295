// SPDX-License-Identifier: Apache-2.0
// A job of several ranks: the first one runs the tests, the others serve.
#include "rill/distributed/transport/mpi/mpi_transport.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/state/saved_state.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

RankTransport* transport = nullptr;  // Of the rank that tests.

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

// - "echo": the request, with `rank` and `pid` beside its values.
// - "freeze": the same, once somebody has continued the process.
// - "stop": the rank ends.
class RankService final : public Service {
 public:
  explicit RankService(int rank) : rank_(rank) {}

  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override {
    // To this thread, which then does not go on until all others have stopped.
    if (info.method == "freeze") raise(SIGSTOP);
    if (info.method == "stop") stopped.Notify();
    Message reply = request;
    reply.values.Set("rank", int64_t{rank_});
    reply.values.Set("pid", int64_t{getpid()});
    return reply;
  }

  absl::Notification stopped;

 private:
  const int rank_;
};

// A batch of this many bytes, which all say `number`.
Message Numbered(int64_t number, int64_t bytes) {
  Message message;
  message.values.Set("number", number);
  Tensor leaf = *Tensor::Empty(DType::kUInt8, {bytes});
  std::fill_n(leaf.data<uint8_t>(), bytes, static_cast<uint8_t>(number));
  RILL_EXPECT_OK(message.batch.Set("x", std::move(leaf)));
  return message;
}

TEST(MpiTransportTest, AllRanksAnswer) {
  ASSERT_EQ(transport->num_ranks(), 3);
  for (int64_t rank = 1; rank < 3; ++rank) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto connection,
        transport->Connect(absl::StrCat("rank:", rank), Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(
        const Message reply,
        connection->Call("echo", {.batch = MakeSteps(3)}, Soon()));
    EXPECT_EQ(*reply.values.Get<int64_t>("rank"), rank);
    RILL_EXPECT_OK(reply.batch.CheckEqual(MakeSteps(3)));
  }
  EXPECT_THAT(transport->Connect("rank:1/nobody", Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"rank:1/nobody\": nobody listens")));
  EXPECT_THAT(transport->Connect("rank:3", Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// MPI carries small blocks at once and large ones behind an agreement.
TEST(MpiTransportTest, LargeAndSmallMessagesKeepTheirOrder) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect("rank:2", Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stream,
                            connection->Open("echo", {.window = 16}, Soon()));
  for (int64_t i = 0; i < 16; ++i) {
    const Message request = Numbered(i, i % 2 == 0 ? 4 << 20 : 1 + i);
    RILL_ASSERT_OK(stream->Send(request, Soon()));
  }
  for (int64_t i = 0; i < 16; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
    RILL_ASSERT_OK(reply.status);
    ASSERT_EQ(*reply.message.values.Get<int64_t>("number"), i);
    RILL_EXPECT_OK(reply.message.batch.CheckEqual(
        Numbered(i, i % 2 == 0 ? 4 << 20 : 1 + i).batch));
  }
}

TEST(MpiTransportTest, ThreadsCallAllRanksAtOnce) {
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      RILL_ASSERT_OK_AND_ASSIGN(
          const auto connection,
          transport->Connect(absl::StrCat("rank:", 1 + thread % 2), Soon()));
      for (int64_t i = 0; i < 50; ++i) {
        RILL_ASSERT_OK_AND_ASSIGN(
            const Message reply,
            connection->Call("echo", Numbered(10 * thread + i, 1000), Soon()));
        RILL_EXPECT_OK(
            reply.batch.CheckEqual(Numbered(10 * thread + i, 1000).batch));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MpiTransportTest, CallsToAStoppedRankEndAtTheirDeadlines) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect("rank:1", Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const Message echo,
                            connection->Call("echo", {}, Soon()));
  const auto pid = static_cast<pid_t>(*echo.values.Get<int64_t>("pid"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stream,
                            connection->Open("freeze", {}, Soon()));
  RILL_ASSERT_OK(stream->Send(Numbered(1, 4 << 20), Soon()));
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // It may not have got so far as to stop itself.
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  EXPECT_THAT(transport->Connect("rank:1",
                                 Clock::System().Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // Others go on.
  RILL_ASSERT_OK_AND_ASSIGN(const auto other,
                            transport->Connect("rank:2", Soon()));
  RILL_EXPECT_OK(other->Call("echo", {}, Soon()).status());
  // It stops itself later than it is continued, now and then: until it answers.
  absl::StatusOr<Reply> reply = absl::DeadlineExceededError("");
  while (absl::IsDeadlineExceeded(reply.status())) {
    ASSERT_EQ(kill(pid, SIGCONT), 0);
    reply = stream->Receive(Clock::System().Now() + absl::Milliseconds(5));
  }
  RILL_ASSERT_OK(reply.status());
  RILL_EXPECT_OK(reply->message.batch.CheckEqual(Numbered(1, 4 << 20).batch));
}

// Serves until "stop" is called.
absl::Status RunServer(std::unique_ptr<RankTransport> own) {
  const auto service = std::make_shared<RankService>(own->rank());
  const auto server = own->Listen("", service);
  if (!server.ok()) return server.status();
  service->stopped.WaitForNotification();
  return (*server)->Shutdown(Soon());
}

// Ranks begin to listen when they get there.
void AwaitServers() {
  const absl::Time deadline = Soon();
  for (int rank = 1; rank < transport->num_ranks(); ++rank) {
    const std::string address = absl::StrCat("rank:", rank);
    while (!transport->Connect(address, deadline).ok() &&
           Clock::System().Now() < deadline) {
      std::this_thread::yield();
    }
  }
}

int RunTests(std::unique_ptr<RankTransport> own) {
  transport = own.get();
  AwaitServers();
  int status = RUN_ALL_TESTS();
  for (int rank = 1; rank < transport->num_ranks(); ++rank) {
    const auto connection =
        transport->Connect(absl::StrCat("rank:", rank), Soon());
    if (!connection.ok() || !(*connection)->Call("stop", {}, Soon()).ok()) {
      status = 1;
    }
  }
  return status;
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto transport = rill::CreateMpiTransport();
  if (!transport.ok()) {
    ADD_FAILURE() << transport.status();
    return 1;
  }
  if ((*transport)->rank() == 0) return rill::RunTests(*std::move(transport));
  return rill::RunServer(*std::move(transport)).ok() ? 0 : 1;
}
