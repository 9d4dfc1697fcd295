// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/stream_server.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/distributed/transport/call_threads.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

Request Numbered(int64_t number) {
  Request request;
  request.message.values.Set("number", number);
  return request;
}

// Pushes a request with this tensor, which nobody else has.
Tensor PushTensor(ServedStream& stream) {
  Tensor tensor = *Tensor::Zeros(DType::kFloat32, {1});
  Request request;
  RILL_EXPECT_OK(request.message.batch.Set("x", tensor));
  RILL_EXPECT_OK(stream.Push(std::move(request)));
  return tensor;
}

// Replies, errors and ends that came back, in order: numbers, codes and texts.
class Log {
 public:
  void Add(std::string event) {
    absl::MutexLock lock(&mu_);
    events_.push_back(std::move(event));
  }
  // Waits for so many.
  std::vector<std::string> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&] {
      mu_.AssertReaderHeld();
      return events_.size() >= count;
    };
    mu_.AwaitWithTimeout(absl::Condition(&is_there), absl::Minutes(1));
    return events_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mu_);
};

class LoggedWay final : public ReplyWay {
 public:
  explicit LoggedWay(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  // "silent" has no reply.
  std::optional<absl::StatusOr<Message>> Call(Service& service,
                                              const CallInfo& info,
                                              const Message& request) override {
    if (info.method != "silent") {
      return ReplyWay::Call(service, info, request);
    }
    log_->Add("silent");
    return std::nullopt;
  }
  void Reply(absl::StatusOr<Message> reply) override {
    log_->Add(reply.ok() ? std::to_string(*reply->values.Get<int64_t>("number"))
                         : absl::StatusCodeToString(reply.status().code()));
  }
  void End(const absl::Status& why) override {
    log_->Add("end: " + std::string(why.message()));
  }
  void Cut(const absl::Status& why) override {
    log_->Add("cut: " + std::string(why.message()));
  }

 private:
  const std::shared_ptr<Log> log_;
};

// Its requests come behind the end alone.
class LateWay final : public ReplyWay {
 public:
  explicit LateWay(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  void Await() override {
    log_->Add("late");
    has_ended_.WaitForNotification();
  }
  void Reply(absl::StatusOr<Message>) override { log_->Add("reply"); }
  void End(const absl::Status&) override { has_ended_.Notify(); }

 private:
  const std::shared_ptr<Log> log_;
  absl::Notification has_ended_;
};

class StreamServerTest : public ::testing::Test {
 protected:
  ~StreamServerTest() override { service_->Release(1000); }

  std::shared_ptr<ServedStream> Open(const std::string& method,
                                     std::shared_ptr<Log> log) {
    auto stream = server_.Open(method, "somebody", /*window=*/8,
                               std::make_unique<LoggedWay>(std::move(log)));
    RILL_EXPECT_OK(stream.status());
    return *std::move(stream);
  }

  const std::shared_ptr<HeldService> service_ = std::make_shared<HeldService>();
  // Waits until all streams rest; nothing is pushed behind it.
  void AwaitRest() { threads_ = nullptr; }

  const std::shared_ptr<Log> log_ = std::make_shared<Log>();
  std::unique_ptr<CallThreads> threads_ = std::make_unique<CallThreads>();
  StreamServer server_{"here", service_, threads_.get()};
};

TEST_F(StreamServerTest, RequestsOfAStreamAreCarriedOutInOrder) {
  const auto stream = Open("echo", log_);
  for (int64_t i = 0; i < 5; ++i) RILL_EXPECT_OK(stream->Push(Numbered(i)));
  EXPECT_THAT(log_->Await(5), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_EQ(service_->last_method(), "echo");
  EXPECT_EQ(service_->last_peer(), "somebody");
  RILL_EXPECT_OK(stream->Push({.deadline = absl::InfinitePast()}));
  EXPECT_THAT(log_->Await(6).back(), "DEADLINE_EXCEEDED");
}

// Fails where it is called twice at once.
class LonelyService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo&,
                               const Message& request) override {
    EXPECT_EQ(++running_, 1);
    std::this_thread::yield();
    --running_;
    return request;
  }

 private:
  std::atomic<int> running_ = 0;
};

TEST_F(StreamServerTest, AStreamHasOneCallAtATime) {
  StreamServer server("there", std::make_shared<LonelyService>(),
                      threads_.get());
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stream,
      server.Open("", "", 300, std::make_unique<LoggedWay>(log_)));
  for (int64_t i = 0; i < 300; ++i) RILL_EXPECT_OK(stream->Push(Numbered(i)));
  EXPECT_EQ(log_->Await(300).back(), "299");
}

TEST_F(StreamServerTest, RequestsBeyondTheWindowAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stream,
      server_.Open("hold", "", 2, std::make_unique<LoggedWay>(log_)));
  RILL_EXPECT_OK(stream->Push(Numbered(0)));
  ASSERT_TRUE(service_->AwaitBegun(1));
  // One more than the window: nobody here knows when a reply is received.
  for (int64_t i = 1; i < 3; ++i) RILL_EXPECT_OK(stream->Push(Numbered(i)));
  EXPECT_THAT(stream->Push(Numbered(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("while 2 wait, want a window of 2")));
  service_->Release(4);
  EXPECT_THAT(log_->Await(3), ElementsAre("0", "1", "2"));
  stream->Close();
  RILL_EXPECT_OK(stream->Push(Numbered(4)));
}

TEST_F(StreamServerTest, StreamsAreCarriedOutAtOnce) {
  const auto other = std::make_shared<Log>();
  const auto first = Open("hold", log_), second = Open("hold", other);
  RILL_EXPECT_OK(first->Push(Numbered(1)));
  RILL_EXPECT_OK(first->Push(Numbered(2)));
  RILL_EXPECT_OK(second->Push(Numbered(3)));
  EXPECT_TRUE(service_->AwaitBegun(2));
  service_->Release(3);
  EXPECT_THAT(log_->Await(2), ElementsAre("1", "2"));
  EXPECT_THAT(other->Await(1), ElementsAre("3"));
}

TEST_F(StreamServerTest, AShutdownEndsStreamsBehindTheReplyUnderWay) {
  const auto idle = std::make_shared<Log>();
  const auto stream = Open("hold", log_), rests = Open("echo", idle);
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  const Tensor waits = PushTensor(*stream);
  ASSERT_TRUE(service_->AwaitBegun(1));
  EXPECT_THAT(server_.Shutdown(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("\"here\": 1 calls still run")));
  EXPECT_EQ(waits.buffer().use_count(), 1);
  RILL_EXPECT_OK(stream->Push(Numbered(3)));
  EXPECT_THAT(log_->Await(0), IsEmpty());
  service_->Release(3);
  RILL_EXPECT_OK(server_.Shutdown(Soon()));
  EXPECT_THAT(log_->Await(2),
              ElementsAre("1", "end: \"here\": the server was shut down"));
  EXPECT_THAT(idle->Await(1),
              ElementsAre("end: \"here\": the server was shut down"));
  EXPECT_EQ(service_->begun(), 1);
  EXPECT_THAT(server_.Open("echo", "", 8, std::make_unique<LoggedWay>(log_)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("\"here\"")));
}

TEST_F(StreamServerTest, AClosedStreamHasNoReplyAndNoEnd) {
  const auto stream = Open("hold", log_);
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  RILL_EXPECT_OK(stream->Push(Numbered(2)));
  ASSERT_TRUE(service_->AwaitBegun(1));
  stream->Close();
  service_->Release(2);
  AwaitRest();
  RILL_EXPECT_OK(server_.Shutdown(Soon()));
  EXPECT_THAT(log_->Await(0), IsEmpty());
  EXPECT_EQ(service_->begun(), 1);
}

TEST_F(StreamServerTest, ACutEndsAllStreamsAndTheServerLives) {
  const auto idle = std::make_shared<Log>();
  const auto stream = Open("hold", log_), rests = Open("echo", idle);
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  ASSERT_TRUE(service_->AwaitBegun(1));
  server_.Cut(absl::UnavailableError("the cable"));
  EXPECT_THAT(log_->Await(1), ElementsAre("cut: the cable"));
  EXPECT_THAT(idle->Await(1), ElementsAre("cut: the cable"));
  service_->Release(1);
  const auto other = std::make_shared<Log>();
  const auto next = Open("echo", other);
  RILL_EXPECT_OK(next->Push(Numbered(2)));
  EXPECT_THAT(other->Await(1), ElementsAre("2"));
  RILL_EXPECT_OK(server_.Shutdown(Soon()));
  EXPECT_THAT(log_->Await(1), ElementsAre("cut: the cable"));
}

TEST_F(StreamServerTest, BehindACallWithoutAReplyNothingIsTaken) {
  const auto stream = Open("silent", log_);
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  RILL_EXPECT_OK(stream->Push(Numbered(2)));
  AwaitRest();
  RILL_EXPECT_OK(stream->Push(Numbered(3)));
  EXPECT_THAT(log_->Await(1), ElementsAre("silent"));
  RILL_EXPECT_OK(server_.Shutdown(Soon()));
  EXPECT_THAT(log_->Await(2),
              ElementsAre("silent", "end: \"here\": the server was shut down"));
}

// The way of a client that comes again at once.
class ReopenedWay final : public ReplyWay {
 public:
  explicit ReopenedWay(std::function<void()> reopen)
      : reopen_(std::move(reopen)) {}
  void Reply(absl::StatusOr<Message>) override {}
  void End(const absl::Status&) override {}
  void Cut(const absl::Status&) override { reopen_(); }

 private:
  const std::function<void()> reopen_;
};

TEST_F(StreamServerTest, AKilledServerTakesNothingFromTheFirstCutOn) {
  absl::StatusOr<std::shared_ptr<ServedStream>> again;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto cut,
      server_.Open("echo", "", 8, std::make_unique<ReopenedWay>([&] {
                     again = server_.Open("echo", "", 8,
                                          std::make_unique<LoggedWay>(log_));
                     if (!again.ok()) return;
                     RILL_EXPECT_OK((*again)->Push(Numbered(1)));
                   })));
  const auto stream = Open("hold", log_);
  RILL_EXPECT_OK(stream->Push(Numbered(2)));
  ASSERT_TRUE(service_->AwaitBegun(1));
  server_.Kill(absl::UnavailableError("the power"));
  EXPECT_THAT(again, StatusIs(absl::StatusCode::kUnavailable));
  RILL_EXPECT_OK(stream->Push(Numbered(3)));
  service_->Release(3);
  RILL_EXPECT_OK(server_.Shutdown(Soon()));
  EXPECT_THAT(log_->Await(1), ElementsAre("cut: the power"));
  EXPECT_EQ(service_->begun(), 1);
}

TEST_F(StreamServerTest, ARequestThatIsDelayedHoldsNoShutdownUp) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stream,
      server_.Open("echo", "", 8, std::make_unique<LateWay>(log_)));
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  EXPECT_THAT(log_->Await(1), ElementsAre("late"));
  RILL_EXPECT_OK(server_.Shutdown(absl::InfinitePast()));
  threads_ = nullptr;
  EXPECT_THAT(log_->Await(1), ElementsAre("late"));
  EXPECT_EQ(service_->begun(), 0);
}

TEST_F(StreamServerTest, AShutdownLetsGoOfTheService) {
  auto held = std::make_shared<HeldService>();
  const std::weak_ptr<HeldService> seen = held;
  StreamServer server("there", std::move(held), threads_.get());
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stream,
      server.Open("echo", "", 8, std::make_unique<LoggedWay>(log_)));
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  EXPECT_THAT(log_->Await(1), ElementsAre("1"));
  RILL_EXPECT_OK(server.Shutdown(Soon()));
  EXPECT_TRUE(seen.expired());
}

TEST_F(StreamServerTest, TheLastCallLetsGoOfTheServiceBeforeItEnds) {
  auto held = std::make_shared<HeldService>();
  const std::weak_ptr<HeldService> seen = held;
  StreamServer server("there", held, threads_.get());
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto stream,
      server.Open("hold", "", 8, std::make_unique<LoggedWay>(log_)));
  RILL_EXPECT_OK(stream->Push(Numbered(1)));
  ASSERT_TRUE(held->AwaitBegun(1));
  EXPECT_THAT(server.Shutdown(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  held->Release();
  held = nullptr;
  RILL_EXPECT_OK(server.Shutdown(Soon()));
  EXPECT_TRUE(seen.expired());
}

TEST_F(StreamServerTest, AServerLeavesBeforeItIsShutDown) {
  const auto streams =
      std::make_shared<StreamServer>("there", service_, threads_.get());
  std::vector<bool> lived;
  const auto leave = [&lived, one = streams.get()] {
    lived.push_back(
        one->Open("", "", 8,
                  std::make_unique<LoggedWay>(std::make_shared<Log>()))
            .ok());
  };
  {
    const auto server = MakeServer(streams, leave);
    EXPECT_EQ(server->address(), "there");
    RILL_EXPECT_OK(server->Shutdown(Soon()));
    EXPECT_THAT(lived, ElementsAre(true));
  }
  EXPECT_THAT(lived, ElementsAre(true, false));
}

}  // namespace
}  // namespace rill
