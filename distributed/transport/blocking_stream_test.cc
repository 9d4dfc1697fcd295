// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/blocking_stream.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/distributed/transport/message.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }
absl::Time Shortly() { return Clock::System().Now() + absl::Milliseconds(5); }

Message Numbered(int64_t number) {
  Message message;
  message.values.Set("number", number);
  return message;
}

// The other side, which outlives exchanges. It answers requests with what they
// say.
struct Peer {
  absl::Notification may_begin;
  absl::Notification may_write;
  absl::Notification is_gone;  // The exchange.

  absl::Mutex mu;
  absl::Status write_error ABSL_GUARDED_BY(mu);
  std::deque<Message> written ABSL_GUARDED_BY(mu);
  bool is_cancelled ABSL_GUARDED_BY(mu) = false;
  bool is_broken ABSL_GUARDED_BY(mu) = false;
  absl::Time last_deadline ABSL_GUARDED_BY(mu);

  void FailReads() {
    absl::MutexLock lock(&mu);
    is_broken = true;
  }
  bool AwaitCancel() {
    absl::MutexLock lock(&mu);
    return mu.AwaitWithTimeout(absl::Condition(&is_cancelled),
                               absl::Minutes(1));
  }
  void FailWrites() {
    absl::MutexLock lock(&mu);
    write_error = absl::InternalError("no room");
  }
};

class FakeExchange final : public BlockingExchange {
 public:
  explicit FakeExchange(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}
  ~FakeExchange() override { peer_->is_gone.Notify(); }

  absl::StatusOr<Write> Prepare(const Message& request,
                                absl::Time deadline) override {
    if (request.values.fields().empty()) {
      return absl::InvalidArgumentError("no number");
    }
    absl::MutexLock lock(&peer_->mu);
    peer_->last_deadline = deadline;
    return [this, request] { return Put(request); };
  }
  absl::Status Begin() override {
    peer_->may_begin.WaitForNotification();
    return absl::OkStatus();
  }
  absl::StatusOr<Reply> Read() override {
    absl::MutexLock lock(&peer_->mu);
    const auto is_there = [this] {
      peer_->mu.AssertReaderHeld();
      return peer_->is_cancelled || peer_->is_broken || !peer_->written.empty();
    };
    peer_->mu.Await(absl::Condition(&is_there));
    if (peer_->is_broken) return absl::UnavailableError("broken");
    if (peer_->is_cancelled) return absl::UnavailableError("cancelled");
    Reply reply = {.message = std::move(peer_->written.front())};
    peer_->written.pop_front();
    return reply;
  }
  void Cancel() override {
    absl::MutexLock lock(&peer_->mu);
    peer_->is_cancelled = true;
  }

 private:
  absl::Status Put(const Message& request) {
    EXPECT_TRUE(peer_->may_begin.HasBeenNotified());
    peer_->may_write.WaitForNotification();
    absl::MutexLock lock(&peer_->mu);
    if (!peer_->write_error.ok()) return peer_->write_error;
    peer_->written.push_back(request);
    return absl::OkStatus();
  }

  const std::shared_ptr<Peer> peer_;
};

class BlockingStreamTest : public ::testing::Test {
 protected:
  void Open(int64_t window = 4) {
    stream_ = std::make_unique<BlockingStream>(
        std::make_unique<FakeExchange>(peer_), "there", window);
  }
  int64_t Receive() {
    const absl::StatusOr<Reply> reply = stream_->Receive(Soon());
    RILL_EXPECT_OK(reply.status());
    return reply.ok() ? *reply->message.values.Get<int64_t>("number") : -1;
  }

  const std::shared_ptr<Peer> peer_ = std::make_shared<Peer>();
  std::unique_ptr<BlockingStream> stream_;
};

TEST_F(BlockingStreamTest, RepliesComeAndTheEndTakesTheThreadsAlong) {
  peer_->may_begin.Notify();
  peer_->may_write.Notify();
  Open();
  for (int64_t i = 0; i < 4; ++i) {
    RILL_ASSERT_OK(stream_->Send(Numbered(i), Soon()));
  }
  EXPECT_THAT(stream_->Send(Numbered(4), absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("there: 4 replies")));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(Receive(), i);
  stream_ = nullptr;
  EXPECT_TRUE(peer_->is_gone.HasBeenNotified());
}

TEST_F(BlockingStreamTest, ARequestThatCannotBeCarriedLeavesTheStream) {
  peer_->may_begin.Notify();
  peer_->may_write.Notify();
  Open(/*window=*/1);
  EXPECT_THAT(stream_->Send({}, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_ASSERT_OK(stream_->Send(Numbered(1), Soon()));
  EXPECT_EQ(Receive(), 1);
}

TEST_F(BlockingStreamTest, AStreamThatDoesNotBeginCostsNoMoreThanTheDeadline) {
  Open();
  RILL_ASSERT_OK(stream_->Send(Numbered(1), Soon()));
  EXPECT_THAT(stream_->Receive(Shortly()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  peer_->may_begin.Notify();
  peer_->may_write.Notify();
  EXPECT_EQ(Receive(), 1);
}

TEST_F(BlockingStreamTest, AStreamThatIsGivenUpBeforeItBeginsIsCancelledThen) {
  Open();
  stream_ = nullptr;
  EXPECT_FALSE(peer_->is_gone.HasBeenNotified());
  peer_->may_begin.Notify();
  peer_->is_gone.WaitForNotification();
}

TEST_F(BlockingStreamTest, AStreamThatIsGivenUpInAWriteLeavesNoThread) {
  peer_->may_begin.Notify();
  Open();
  RILL_ASSERT_OK(stream_->Send(Numbered(1), Soon()));
  EXPECT_THAT(stream_->Receive(Shortly()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  stream_ = nullptr;
  EXPECT_FALSE(peer_->is_gone.HasBeenNotified());
  peer_->may_write.Notify();
  peer_->is_gone.WaitForNotification();
}

TEST_F(BlockingStreamTest, AWriteThatFailsEndsTheStreamWithTheReadersError) {
  peer_->may_begin.Notify();
  peer_->may_write.Notify();
  peer_->FailWrites();
  Open();
  RILL_ASSERT_OK(stream_->Send(Numbered(1), Soon()));
  EXPECT_THAT(stream_->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable, "cancelled"));
  EXPECT_THAT(stream_->Send(Numbered(2), Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(BlockingStreamTest, AReadThatFailsFreesTheWriteUnderWay) {
  peer_->may_begin.Notify();
  Open();
  RILL_ASSERT_OK(stream_->Send(Numbered(1), Soon()));
  peer_->FailReads();
  EXPECT_THAT(stream_->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable, "broken"));
  EXPECT_TRUE(peer_->AwaitCancel());
  peer_->may_write.Notify();
}

TEST_F(BlockingStreamTest, AWriteKnowsTheDeadlineHoweverLateItIs) {
  Open();
  const absl::Time deadline = Soon();
  RILL_ASSERT_OK(stream_->Send(Numbered(1), deadline));
  {
    absl::MutexLock lock(&peer_->mu);
    EXPECT_EQ(peer_->last_deadline, deadline);
  }
  peer_->may_begin.Notify();
  peer_->may_write.Notify();
  EXPECT_EQ(Receive(), 1);
}

}  // namespace
}  // namespace rill
