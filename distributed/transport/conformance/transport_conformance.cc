// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/conformance/transport_conformance.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "rill/base/clock.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_server.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

// A server of the engine and a connection to it.
struct Pair {
  explicit Pair(const TransportFactory& factory) : subject(factory()) {}

  TransportSubject subject;
  HeldServer held{*subject.transport, subject.address};
};

Message Numbered(int64_t number) {
  Message message{.batch = MakeSteps(3, number)};
  message.values.Set("number", number);
  return message;
}

// The number of a reply whose columns fit it; -1 for another, -2 for an error.
int64_t NumberOf(const absl::StatusOr<Reply>& reply) {
  RILL_EXPECT_OK(reply.status());
  if (!reply.ok()) return -2;
  RILL_EXPECT_OK(reply->status);
  const auto number = reply->message.values.Get<int64_t>("number");
  RILL_EXPECT_OK(number.status());
  if (!number.ok()) return -2;
  return reply->message.batch.CheckEqual(MakeSteps(3, *number)).ok() ? *number
                                                                     : -1;
}

TEST_P(TransportConformanceTest, ValuesArriveAsTheyWere) {
  Pair pair(GetParam());
  Message request;
  request.values = SavedState("Request", 3);
  request.values.Set("int", int64_t{-5});
  request.values.Set("large", int64_t{1} << 62);
  request.values.Set("double", 0.1);
  request.values.Set("text", std::string("two\nlines"));
  request.values.Set("bytes", std::string("\0\xff\x80 \"", 5));
  request.values.Set("ints", std::vector<int64_t>{1, -2, INT64_MAX});
  request.values.Set("doubles", std::vector<double>{1e-300, -0.5});
  SavedState part("Part", 1);
  part.Set("n", int64_t{7});
  request.values.SetPart("part", part);
  RILL_ASSERT_OK_AND_ASSIGN(
      const Message reply, pair.held.connection->Call("echo", request, Soon()));
  EXPECT_EQ(reply.values.Encode(), request.values.Encode());
  EXPECT_TRUE(reply.batch.empty());
}

TEST_P(TransportConformanceTest, ColumnsArriveAsTheyWere) {
  Pair pair(GetParam());
  TensorDict batch({2, 3});
  for (const DType dtype :
       {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32,
        DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32,
        DType::kFloat64}) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf, Tensor::Zeros(dtype, {2, 3, 4}));
    auto* const bytes = leaf.data<uint8_t>();
    for (int64_t i = 0; i < leaf.size_bytes(); ++i) {
      bytes[i] = static_cast<uint8_t>(dtype == DType::kBool ? i % 2 : i);
    }
    RILL_ASSERT_OK(batch.Set(absl::StrCat("next/", DTypeName(dtype)), leaf));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor flat,
                            Tensor::Zeros(DType::kFloat32, {2, 3}));
  RILL_ASSERT_OK(batch.Set("reward", flat));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Message reply,
      pair.held.connection->Call("echo", {.batch = batch}, Soon()));
  RILL_EXPECT_OK(reply.batch.CheckEqual(batch));
}

TEST_P(TransportConformanceTest, MessagesMayBeEmptyOrOfNoRows) {
  Pair pair(GetParam());
  RILL_ASSERT_OK_AND_ASSIGN(Message reply,
                            pair.held.connection->Call("echo", {}, Soon()));
  EXPECT_TRUE(reply.batch.empty());
  EXPECT_TRUE(reply.values.fields().empty());
  RILL_ASSERT_OK_AND_ASSIGN(
      reply,
      pair.held.connection->Call("echo", {.batch = MakeSteps(0)}, Soon()));
  RILL_EXPECT_OK(reply.batch.CheckEqual(MakeSteps(0)));
}

TEST_P(TransportConformanceTest, MegabytesArrive) {
  Pair pair(GetParam());
  RILL_ASSERT_OK_AND_ASSIGN(Tensor wide,
                            Tensor::Empty(DType::kInt64, {1 << 10, 1 << 10}));
  for (int64_t i = 0; i < wide.num_elements(); ++i) {
    wide.data<int64_t>()[i] = i;
  }
  TensorDict batch({1 << 10});
  RILL_ASSERT_OK(batch.Set("wide", wide));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Message reply,
      pair.held.connection->Call("echo", {.batch = batch}, Soon()));
  RILL_EXPECT_OK(reply.batch.CheckEqual(batch));
}

TEST_P(TransportConformanceTest, RepliesComeInTheOrderOfTheRequests) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo", /*window=*/8);
  for (int64_t i = 0; i < 8; ++i) {
    RILL_ASSERT_OK(stream->Send(Numbered(i), Soon()));
  }
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(NumberOf(stream->Receive(Soon())), i);
  }
}

TEST_P(TransportConformanceTest, EachRequestIsCarriedOutOnce) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo");
  for (int64_t i = 0; i < 5; ++i) {
    RILL_ASSERT_OK(stream->Send(Numbered(i), Soon()));
    EXPECT_EQ(NumberOf(stream->Receive(Soon())), i);
  }
  EXPECT_EQ(pair.held.service->begun(), 5);
}

TEST_P(TransportConformanceTest, OneThreadSendsWhileAnotherReceives) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo", /*window=*/3);
  constexpr int64_t kCalls = 200;
  std::thread sender([&] {
    for (int64_t i = 0; i < kCalls; ++i) {
      RILL_EXPECT_OK(stream->Send(Numbered(i), Soon()));
    }
  });
  for (int64_t i = 0; i < kCalls; ++i) {
    // The request may not have been sent yet.
    absl::StatusOr<Reply> reply = stream->Receive(Soon());
    while (absl::IsFailedPrecondition(reply.status())) {
      std::this_thread::yield();
      reply = stream->Receive(Soon());
    }
    EXPECT_EQ(NumberOf(reply), i);
  }
  sender.join();
}

TEST_P(TransportConformanceTest, TheWindowHoldsTheSender) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo", /*window=*/2);
  for (int64_t i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(stream->Send(Numbered(i), Soon()));
  }
  EXPECT_THAT(stream->Send(Numbered(2), absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 0);
  RILL_ASSERT_OK(stream->Send(Numbered(2), Soon()));
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1);
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 2);
}

TEST_P(TransportConformanceTest, ErrorsOfTheServiceAreReplies) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("fail");
  for (int64_t code = 1; code <= 16; ++code) {
    Message request;
    request.values.Set("code", code);
    request.values.Set("text", absl::StrCat("text of ", code, ": \xc3\xa9\n"));
    RILL_ASSERT_OK(stream->Send(request, Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
    EXPECT_THAT(reply.status,
                StatusIs(static_cast<absl::StatusCode>(code),
                         absl::StrCat("text of ", code, ": \xc3\xa9\n")));
    EXPECT_TRUE(reply.message.batch.empty());
  }
  EXPECT_THAT(pair.held.connection->Call("none", {}, Soon()),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(TransportConformanceTest, AnExceptionOfTheServiceIsAReply) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("throw");
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(stream->Send({}, Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
    EXPECT_THAT(reply.status,
                StatusIs(absl::StatusCode::kInternal, HasSubstr("thrown")));
  }
}

TEST_P(TransportConformanceTest, TheServiceIsToldWhoCallsWhatAndUntilWhen) {
  Pair pair(GetParam());
  const absl::Time deadline = Clock::System().Now() + absl::Seconds(90);
  RILL_ASSERT_OK(pair.held.connection->Call("echo", {}, deadline).status());
  EXPECT_EQ(pair.held.service->last_method(), "echo");
  EXPECT_NE(pair.held.service->last_peer(), "");
  // An engine may carry the time that is left, and so be late by the way.
  EXPECT_GE(pair.held.service->last_deadline(), deadline - absl::Seconds(1));
  EXPECT_LE(pair.held.service->last_deadline(), deadline + absl::Seconds(60));
}

TEST_P(TransportConformanceTest, ReceiveEndsAtItsDeadlineAndLosesNothing) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("hold");
  RILL_ASSERT_OK(stream->Send(Numbered(1), Soon()));
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  pair.held.service->Release();
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1);
}

TEST_P(TransportConformanceTest, NothingIsReceivedWithoutARequest) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo");
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  RILL_ASSERT_OK(stream->Send(Numbered(1), Soon()));
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1);
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(TransportConformanceTest, ARequestThatComesTooLateIsNotCarriedOut) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("hold");
  RILL_ASSERT_OK(stream->Send(Numbered(1), Soon()));
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  const absl::Time deadline = Clock::System().Now() + absl::Milliseconds(20);
  RILL_ASSERT_OK(stream->Send(Numbered(2), deadline));
  EXPECT_THAT(stream->Receive(deadline + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  pair.held.service->Release(2);
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1);
  RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
  EXPECT_THAT(reply.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(pair.held.service->begun(), 1);
}

TEST_P(TransportConformanceTest, AClientThatWaitsHoldsUpNobodyElse) {
  Pair pair(GetParam());
  const auto held = pair.held.Open("hold");
  RILL_ASSERT_OK(held->Send(Numbered(1), Soon()));
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  RILL_EXPECT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
  const auto other = pair.held.Connect();
  RILL_EXPECT_OK(other->Call("echo", {}, Soon()).status());
  pair.held.service->Release();
  EXPECT_EQ(NumberOf(held->Receive(Soon())), 1);
}

TEST_P(TransportConformanceTest, AStreamEndsAtOnceAndItsServerGoesOn) {
  Pair pair(GetParam());
  auto held = pair.held.Open("hold");
  RILL_ASSERT_OK(held->Send(Numbered(1), Soon()));
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  held = nullptr;  // Would wait for a minute if it waited for the call.
  RILL_EXPECT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
  pair.held.service->Release();
}

TEST_P(TransportConformanceTest, StreamsOutliveTheirConnection) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("echo");
  pair.held.connection = nullptr;
  RILL_ASSERT_OK(stream->Send(Numbered(4), Soon()));
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 4);
}

TEST_P(TransportConformanceTest, NobodyListensAtAFreeAddress) {
  const TransportSubject subject = GetParam()();
  const absl::Time deadline = Soon();
  auto connection = subject.transport->Connect(subject.free_address, deadline);
  const absl::Status status =
      connection.ok() ? (*connection)->Call("echo", {}, deadline).status()
                      : connection.status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr(subject.free_address)));
}

TEST_P(TransportConformanceTest, AnAddressHasOneServer) {
  Pair pair(GetParam());
  EXPECT_THAT(pair.subject.transport->Listen(pair.held.server->address(),
                                             pair.held.service),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(pair.held.server->address())));
}

TEST_P(TransportConformanceTest, ShutdownWaitsForTheCallUnderWay) {
  Pair pair(GetParam());
  const auto stream = pair.held.Open("hold");
  for (int64_t i = 1; i <= 2; ++i) {
    RILL_ASSERT_OK(stream->Send(Numbered(i), Soon()));
  }
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  EXPECT_THAT(
      pair.held.server->Shutdown(Clock::System().Now() + absl::Milliseconds(5)),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
  std::thread release([&] { pair.held.service->Release(2); });
  RILL_EXPECT_OK(pair.held.server->Shutdown(Soon()));
  release.join();
  EXPECT_EQ(pair.held.service->begun(), 1);
  EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1);
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(stream->Send(Numbered(3), Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(TransportConformanceTest, AServerMayComeBackAtItsAddress) {
  Pair pair(GetParam());
  RILL_ASSERT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
  const std::string address = pair.held.server->address();
  RILL_ASSERT_OK(pair.held.server->Shutdown(Soon()));
  EXPECT_THAT(pair.held.connection->Call("echo", {}, Soon()).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  pair.held.server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(pair.held.server, pair.subject.transport->Listen(
                                                  address, pair.held.service));
  pair.held.connection = pair.held.Connect();
  RILL_EXPECT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
}

TEST_P(TransportConformanceTest, ManyClientsAtOnce) {
  Pair pair(GetParam());
  std::vector<std::thread> clients;
  for (int64_t client = 0; client < 4; ++client) {
    clients.emplace_back([&pair, client] {
      const auto connection = pair.held.Connect();
      ASSERT_NE(connection, nullptr);
      RILL_ASSERT_OK_AND_ASSIGN(
          const auto stream, connection->Open("echo", {.window = 2}, Soon()));
      for (int64_t i = 0; i < 50; ++i) {
        RILL_ASSERT_OK(stream->Send(Numbered(1000 * client + i), Soon()));
        EXPECT_EQ(NumberOf(stream->Receive(Soon())), 1000 * client + i);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_P(TransportConformanceTest, BadOptionsAreNamed) {
  Pair pair(GetParam());
  EXPECT_THAT(
      pair.held.connection->Open("echo", {.window = 0}, Soon()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("window: got 0")));
  EXPECT_THAT(
      pair.subject.transport->Listen(pair.subject.free_address, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportConformanceTest);

}  // namespace rill
