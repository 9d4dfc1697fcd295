// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_transport.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_server.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<InprocTransport> MakeInproc(const InprocFaults& faults = {}) {
  auto transport = InprocTransport::Create(faults);
  RILL_EXPECT_OK(transport.status());
  return *std::move(transport);
}

TransportSubject MakeSubject(const InprocFaults& faults = {}) {
  return {
      .transport = MakeInproc(faults), .address = "", .free_address = "nobody"};
}

INSTANTIATE_TEST_SUITE_P(Inproc, TransportConformanceTest,
                         ::testing::Values([] { return MakeSubject(); }));
INSTANTIATE_TEST_SUITE_P(Delayed, TransportConformanceTest,
                         ::testing::Values([] {
                           return MakeSubject(
                               {.max_delay = absl::Microseconds(200)});
                         }));

// --- engines that the suite refuses ------------------------------------------

// The steps that a wrong engine does otherwise; null: as it should be.
struct Wrongs {
  std::function<absl::StatusOr<Message>(Service&, CallInfo, Message)> call =
      nullptr;
  std::function<absl::StatusOr<Reply>(CallStream&, absl::Time)> receive =
      nullptr;
  std::function<absl::Status(Server&, absl::Time)> shutdown = nullptr;
  int64_t more_window = 0;
};

class WrongService final : public Service {
 public:
  WrongService(std::shared_ptr<Service> inner, const Wrongs& wrongs)
      : inner_(std::move(inner)), wrongs_(wrongs) {}
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override {
    return wrongs_.call == nullptr ? inner_->Call(info, request)
                                   : wrongs_.call(*inner_, info, request);
  }

 private:
  const std::shared_ptr<Service> inner_;
  const Wrongs wrongs_;
};

class WrongStream final : public CallStream {
 public:
  WrongStream(std::unique_ptr<CallStream> inner, const Wrongs& wrongs)
      : inner_(std::move(inner)), wrongs_(wrongs) {}
  absl::Status Send(const Message& request, absl::Time deadline) override {
    return inner_->Send(request, deadline);
  }
  absl::StatusOr<Reply> Receive(absl::Time deadline) override {
    return wrongs_.receive == nullptr ? inner_->Receive(deadline)
                                      : wrongs_.receive(*inner_, deadline);
  }

 private:
  const std::unique_ptr<CallStream> inner_;
  const Wrongs wrongs_;
};

class WrongServer final : public Server {
 public:
  WrongServer(std::unique_ptr<Server> inner, const Wrongs& wrongs)
      : inner_(std::move(inner)), wrongs_(wrongs) {}
  const std::string& address() const override { return inner_->address(); }
  absl::Status Shutdown(absl::Time deadline) override {
    return wrongs_.shutdown == nullptr ? inner_->Shutdown(deadline)
                                       : wrongs_.shutdown(*inner_, deadline);
  }

 private:
  const std::unique_ptr<Server> inner_;
  const Wrongs wrongs_;
};

class WrongConnection final : public Connection {
 public:
  WrongConnection(std::unique_ptr<Connection> inner, const Wrongs& wrongs)
      : inner_(std::move(inner)), wrongs_(wrongs) {}
  absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time deadline) override {
    RILL_ASSIGN_OR_RETURN(
        auto stream,
        inner_->Open(method, {.window = options.window + wrongs_.more_window},
                     deadline));
    return std::make_unique<WrongStream>(std::move(stream), wrongs_);
  }

 private:
  const std::unique_ptr<Connection> inner_;
  const Wrongs wrongs_;
};

class WrongTransport final : public Transport {
 public:
  explicit WrongTransport(Wrongs wrongs) : wrongs_(std::move(wrongs)) {}
  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const std::string& address, std::shared_ptr<Service> service) override {
    if (service != nullptr) {
      service = std::make_shared<WrongService>(std::move(service), wrongs_);
    }
    RILL_ASSIGN_OR_RETURN(auto server,
                          inner_->Listen(address, std::move(service)));
    return std::make_unique<WrongServer>(std::move(server), wrongs_);
  }
  absl::StatusOr<std::unique_ptr<Connection>> Connect(
      const std::string& address, absl::Time deadline) override {
    RILL_ASSIGN_OR_RETURN(auto connection, inner_->Connect(address, deadline));
    return std::make_unique<WrongConnection>(std::move(connection), wrongs_);
  }

 private:
  const std::shared_ptr<InprocTransport> inner_ = MakeInproc();
  const Wrongs wrongs_;
};

TransportFactory Wrong(Wrongs wrongs) {
  return [wrongs = std::move(wrongs)]() -> TransportSubject {
    return {.transport = std::make_shared<WrongTransport>(wrongs),
            .address = "",
            .free_address = "nobody"};
  };
}

TransportFactory Faulty(const InprocFaults& faults) {
  return [faults] { return MakeSubject(faults); };
}

std::vector<WrongPart<TransportConformanceTest>> WrongTransports() {
  return {
      {"DropsValues", "ValuesArriveAsTheyWere", "request.values.Encode()",
       Wrong({.call =
                  [](Service& inner, CallInfo info, Message request) {
                    request.values = SavedState();
                    return inner.Call(info, request);
                  }})},
      {"DropsColumns", "ColumnsArriveAsTheyWere", "reply.batch.CheckEqual",
       Wrong({.call =
                  [](Service& inner, CallInfo info, Message request) {
                    request.batch = TensorDict();
                    return inner.Call(info, request);
                  }})},
      {"HasNoDeadlines", "TheServiceIsToldWhoCallsWhatAndUntilWhen",
       "last_deadline()",
       Wrong({.call =
                  [](Service& inner, CallInfo info, Message request) {
                    info.deadline = absl::InfiniteFuture();
                    return inner.Call(info, request);
                  }})},
      {"HidesThePeer", "TheServiceIsToldWhoCallsWhatAndUntilWhen",
       "last_peer()",
       Wrong({.call =
                  [](Service& inner, CallInfo info, Message request) {
                    info.peer = "";
                    return inner.Call(info, request);
                  }})},
      {"MakesServiceErrorsItsOwn", "ErrorsOfTheServiceAreReplies",
       "stream->Receive",
       Wrong({.receive = [](CallStream& inner,
                            absl::Time deadline) -> absl::StatusOr<Reply> {
         RILL_ASSIGN_OR_RETURN(Reply reply, inner.Receive(deadline));
         RILL_RETURN_IF_ERROR(reply.status);
         return reply;
       }})},
      {"LosesTheReplyAtADeadline", "ReceiveEndsAtItsDeadlineAndLosesNothing",
       "Which is: -2",
       Wrong(
           {.receive =
                [lost = false](CallStream& inner, absl::Time deadline) mutable {
                  if (lost) inner.Receive(deadline).IgnoreError();
                  auto reply = inner.Receive(deadline);
                  lost = absl::IsDeadlineExceeded(reply.status());
                  return reply;
                }})},
      {"HasNoWindow", "TheWindowHoldsTheSender", "DEADLINE_EXCEEDED",
       Wrong({.more_window = 100})},
      {"DoesNotWaitAtShutdown", "ShutdownWaitsForTheCallUnderWay",
       "pair.held.server->Shutdown",
       Wrong({.shutdown =
                  [](Server& inner, absl::Time) {
                    inner.Shutdown(absl::InfinitePast()).IgnoreError();
                    return absl::OkStatus();
                  }})},
      {"LosesRequests", "EachRequestIsCarriedOutOnce", "UNAVAILABLE",
       Faulty({.lose_request = 1})},
      {"LosesReplies", "EachRequestIsCarriedOutOnce", "UNAVAILABLE",
       Faulty({.lose_reply = 1})},
      {"RepeatsRequests", "EachRequestIsCarriedOutOnce",
       "pair.held.service->begun()", Faulty({.repeat = 1})},
      {"LosesConnections", "ManyClientsAtOnce", "UNAVAILABLE",
       Faulty({.lose_request = 0.5})},
  };
}
RILL_REFUSES_WRONG_PARTS(TransportConformanceTest, WrongTransports)

// --- faults ------------------------------------------------------------------

struct Pair {
  explicit Pair(const InprocFaults& faults = {})
      : transport(MakeInproc(faults)) {}

  const std::shared_ptr<InprocTransport> transport;
  HeldServer held{*transport, "replay"};
};

TEST(InprocTransportTest, Example) {
  const auto run = []() -> absl::Status {
    const auto service = std::make_shared<HeldService>();
    const absl::Time deadline = Soon();
    RILL_ASSIGN_OR_RETURN(auto transport, InprocTransport::Create());
    RILL_ASSIGN_OR_RETURN(auto server, transport->Listen("replay", service));
    RILL_ASSIGN_OR_RETURN(auto connection,
                          transport->Connect("replay", deadline));
    return connection->Call("echo", {}, deadline).status();
  };
  RILL_EXPECT_OK(run());
}

TEST(InprocTransportTest, ALostRequestEndsItsStreamBeforeTheCall) {
  Pair pair({.lose_request = 1});
  EXPECT_THAT(pair.held.connection->Call("echo", {}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(pair.held.service->begun(), 0);
}

TEST(InprocTransportTest, ALostReplyEndsItsStreamBehindTheCall) {
  Pair pair({.lose_reply = 1});
  EXPECT_THAT(pair.held.connection->Call("echo", {}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"replay\": the connection was lost")));
  EXPECT_EQ(pair.held.service->begun(), 1);
}

TEST(InprocTransportTest, AStalledStreamIsSilent) {
  Pair pair({.stall = 1});
  const auto stream = pair.held.Open("echo");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("no reply from \"replay\"")));
  RILL_ASSERT_OK(pair.transport->SetFaults({}));
  RILL_EXPECT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
}

TEST(InprocTransportTest, ALateRequestIsCarriedOutBehindOthers) {
  Pair pair({.late = 1});
  EXPECT_THAT(pair.held.connection->Call("echo", {}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(pair.held.service->begun(), 0);
  RILL_ASSERT_OK(pair.transport->SetFaults({}));
  for (int i = 0; i < 8; ++i) {
    RILL_ASSERT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
  }
  EXPECT_EQ(pair.held.service->begun(), 9);
}

TEST(InprocTransportTest, ARequestThatIsStillOnItsWayHoldsNoShutdownUp) {
  Pair pair({.max_delay = absl::Hours(1000)});
  const auto stream = pair.held.Open("echo");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  // So that its thread is there, or it shows nothing.
  EXPECT_THAT(stream->Receive(Clock::System().Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  RILL_EXPECT_OK(pair.held.server->Shutdown(absl::InfinitePast()));
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(pair.held.service->begun(), 0);
}

TEST(InprocTransportTest, ACutEndsStreamsAndTheServerLives) {
  Pair pair;
  const auto stream = pair.held.Open("hold");
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  pair.transport->Cut("replay");
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"replay\": the connection was cut")));
  RILL_EXPECT_OK(pair.held.connection->Call("echo", {}, Soon()).status());
  pair.held.service->Release();
}

TEST(InprocTransportTest, AKilledServerIsGoneAndItsAddressFree) {
  Pair pair;
  const auto stream = pair.held.Open("hold");
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(stream->Send({}, Soon()));
  ASSERT_TRUE(pair.held.service->AwaitBegun(1));
  pair.transport->Kill("replay");
  EXPECT_THAT(stream->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("\"replay\": the server was killed")));
  EXPECT_THAT(pair.held.connection->Call("echo", {}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("replay")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto next, pair.transport->Listen("replay", pair.held.service));
  pair.held.service->Release(2);
  // The end of the killed one takes nothing from the next.
  RILL_EXPECT_OK(pair.held.server->Shutdown(Soon()));
  EXPECT_EQ(pair.held.service->begun(), 1);
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            pair.transport->Connect("replay", Soon()));
  RILL_EXPECT_OK(connection->Call("echo", {}, Soon()).status());
}

TEST(InprocTransportTest, AServerThatIsGoneKeepsNoLateRequest) {
  for (const bool is_killed : {true, false}) {
    Pair pair({.late = 1});
    RILL_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Buffer> bytes,
                              Buffer::Allocate(8));
    Message request;
    RILL_ASSERT_OK(request.batch.Set(
        "x", *Tensor::View(bytes, DType::kUInt8, Shape({8}), 0)));
    EXPECT_THAT(pair.held.connection->Call("echo", request, Soon()),
                StatusIs(absl::StatusCode::kUnavailable));
    request = {};
    if (is_killed) {
      pair.transport->Kill("replay");
    } else {
      pair.held.server = nullptr;
    }
    // The thread of the call may be about to let go of it.
    while (bytes.use_count() > 1) std::this_thread::yield();
  }
}

// Has the last of its engine.
class KeepsItsEngine final : public Service {
 public:
  KeepsItsEngine(std::shared_ptr<HeldService> held,
                 std::unique_ptr<Connection> connection,
                 absl::Notification* is_gone)
      : held_(std::move(held)),
        connection_(std::move(connection)),
        is_gone_(*is_gone) {}
  ~KeepsItsEngine() override {
    connection_ = nullptr;
    is_gone_.Notify();
  }

  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override {
    return held_->Call(info, request);
  }

 private:
  const std::shared_ptr<HeldService> held_;
  std::unique_ptr<Connection> connection_;
  absl::Notification& is_gone_;
};

TEST(InprocTransportTest, AnEngineMayEndWithAServiceBehindItsLastCall) {
  absl::Notification is_gone;
  std::unique_ptr<Server> server;
  const auto held = std::make_shared<HeldService>();
  {
    const auto transport = MakeInproc();
    const HeldServer other(*transport);
    auto connection = other.Connect();
    RILL_ASSERT_OK_AND_ASSIGN(
        server,
        transport->Listen("", std::make_shared<KeepsItsEngine>(
                                  held, std::move(connection), &is_gone)));
    RILL_ASSERT_OK_AND_ASSIGN(connection,
                              transport->Connect(server->address(), Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(const auto stream,
                              connection->Open("hold", {}, Soon()));
    RILL_ASSERT_OK(stream->Send({}, Soon()));
    ASSERT_TRUE(held->AwaitBegun(1));
  }
  server = nullptr;
  EXPECT_FALSE(is_gone.HasBeenNotified());
  held->Release();
  is_gone.WaitForNotification();
}

}  // namespace
}  // namespace rill
