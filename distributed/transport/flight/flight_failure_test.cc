// SPDX-License-Identifier: Apache-2.0
// Servers that are killed or do not move, in processes of their own.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "arrow/flight/client.h"
#include "arrow/flight/types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/process/child_process.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/flight/flight_stream.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

// serve_on_pipe, which ends with this object.
class FlightFailureTest : public ::testing::Test {
 protected:
  struct Child {
    std::unique_ptr<ChildProcess> process;
    std::string address;
    int life = -1;  // It ends when this is closed.
  };

  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(transport_, FlightTransport::Create());
  }
  void TearDown() override {
    for (const int life : lives_) close(life);
  }

  void StartServer(Child* child) {
    std::array<int, 2> says, life;
    ASSERT_EQ(pipe2(says.data(), O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(life.data(), O_CLOEXEC), 0);
    lives_.push_back(life[1]);
    const char* const folder = std::getenv("TEST_SRCDIR");
    const char* const workspace = std::getenv("TEST_WORKSPACE");
    RILL_ASSERT_OK_AND_ASSIGN(
        child->process,
        ChildProcess::Start({.program = absl::StrCat(
                                 folder == nullptr ? "" : folder, "/",
                                 workspace == nullptr ? "" : workspace,
                                 "/distributed/transport/flight/serve_on_pipe"),
                             .descriptors = {says[1], life[0]}}));
    close(says[1]);
    close(life[0]);
    char byte;
    while (read(says[0], &byte, 1) == 1 && byte != '\n') {
      child->address += byte;
    }
    close(says[0]);
    ASSERT_NE(child->address, "") << child->process->Kill();
  }

  std::unique_ptr<FlightTransport> transport_;
  std::vector<int> lives_;
};

TEST_F(FlightFailureTest, AKilledServerIsUnavailableAndEndsNobodyElse) {
  Child killed, other;
  StartServer(&killed);
  StartServer(&other);
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport_->Connect(killed.address, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto stream,
                            connection->Open("hold", {}, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto idle,
                            connection->Open("echo", {}, Soon()));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  killed.process->Kill();
  EXPECT_THAT(
      stream->Receive(absl::InfiniteFuture()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(killed.address)));
  EXPECT_THAT(
      connection->Open("echo", {}, Soon()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(killed.address)));
  EXPECT_THAT(transport_->Connect(killed.address, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const auto alive,
                            transport_->Connect(other.address, Soon()));
  RILL_EXPECT_OK(alive->Call("echo", {}, Soon()).status());
}

TEST_F(FlightFailureTest, AServerThatDoesNotMoveCostsNoMoreThanTheDeadline) {
  Child child;
  StartServer(&child);
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport_->Connect(child.address, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(auto stream, connection->Open("echo", {}, Soon()));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_ASSERT_OK(stream->Receive(Soon()).status());
  ASSERT_EQ(kill(child.process->pid(), SIGSTOP), 0);
  // More than all buffers on the way take.
  TensorDict batch({1 << 24});
  RILL_ASSERT_OK(batch.Set("x", *Tensor::Zeros(DType::kInt64, {1 << 24})));
  const auto in_a_while = [] {
    return Clock::System().Now() + absl::Milliseconds(20);
  };
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(stream->Send({.batch = batch}, in_a_while()));
  }
  EXPECT_THAT(stream->Receive(in_a_while()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(connection->Open("echo", {}, in_a_while()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(transport_->Connect(child.address, in_a_while()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  stream = nullptr;  // In the midst of a write.
  ASSERT_EQ(kill(child.process->pid(), SIGCONT), 0);
  RILL_EXPECT_OK(connection->Call("echo", {}, Soon()).status());
}

int64_t NumThreads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

// Its threads wait for a write that nobody takes, until the connection ends.
TEST_F(FlightFailureTest, AStreamThatIsGivenUpInAWriteLeavesNoThread) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto transport,
      FlightTransport::Create({.silence_timeout = absl::Milliseconds(200)}));
  Child child;
  StartServer(&child);
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect(child.address, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(auto stream, connection->Open("echo", {}, Soon()));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_ASSERT_OK(stream->Receive(Soon()).status());
  const int64_t threads = NumThreads();
  ASSERT_EQ(kill(child.process->pid(), SIGSTOP), 0);
  TensorDict batch({1 << 24});
  RILL_ASSERT_OK(batch.Set("x", *Tensor::Zeros(DType::kInt64, {1 << 24})));
  RILL_ASSERT_OK(stream->Send({.batch = batch}, Soon()));
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  stream = nullptr;
  while (NumThreads() > threads - 2) std::this_thread::yield();
}

// Between the two steps of Open the server may stop: then nobody answers the
// connection that begins the stream.
TEST(FlightStreamTest, AStreamThatDoesNotBeginCostsNoMoreThanTheDeadline) {
  namespace flight = ::arrow::flight;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const of = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, of, size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, of, &size), 0);
  auto client = flight::FlightClient::Connect(
      *flight::Location::ForGrpcTcp("127.0.0.1", ntohs(address.sin_port)));
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  const auto stream =
      flight_internal::MakeFlightStream({.who = "here",
                                         .window = 1,
                                         .method = "echo",
                                         .client = *std::move(client),
                                         .options = {}});
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // The connection ends, and with it the stream.
  close(listener);
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("here")));
}

}  // namespace
}  // namespace rill
