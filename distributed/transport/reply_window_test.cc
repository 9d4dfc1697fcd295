// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/reply_window.h"

#include <cstdint>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/distributed/transport/message.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kDeadlineExceeded =
    absl::StatusCode::kDeadlineExceeded;
constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

Reply Numbered(int64_t number) {
  Reply reply;
  reply.message.values.Set("number", number);
  return reply;
}

int64_t NumberOf(const absl::StatusOr<Reply>& reply) {
  RILL_EXPECT_OK(reply.status());
  return reply.ok() ? reply->message.values.Get<int64_t>("number").value_or(-1)
                    : -2;
}

TEST(ReplyWindowTest, RoomIsMadeByReceiving) {
  ReplyWindow window("echo", /*window=*/2);
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(window.AwaitRoom(absl::InfinitePast()));
    RILL_ASSERT_OK(window.Sent());
  }
  window.Push(Numbered(1));
  EXPECT_THAT(
      window.AwaitRoom(absl::InfinitePast()),
      StatusIs(kDeadlineExceeded, HasSubstr("echo: 2 replies are not")));
  EXPECT_EQ(NumberOf(window.Receive(absl::InfinitePast())), 1);
  RILL_EXPECT_OK(window.AwaitRoom(absl::InfinitePast()));
}

TEST(ReplyWindowTest, RepliesThatNobodyWaitsForAreDropped) {
  ReplyWindow window("echo", 2);
  window.Push(Numbered(0));
  EXPECT_THAT(window.Receive(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  RILL_ASSERT_OK(window.Sent());
  window.Push(Numbered(1));
  window.Push(Numbered(2));
  EXPECT_EQ(NumberOf(window.Receive(absl::InfinitePast())), 1);
  EXPECT_THAT(window.Receive(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ReplyWindowTest, RepliesFromBeforeTheEndAreReceived) {
  ReplyWindow window("echo", 4);
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(window.Sent());
  window.Push(Numbered(1));
  window.End(absl::UnavailableError("first"));
  window.End(absl::UnavailableError("second"));
  EXPECT_THAT(window.Sent(), StatusIs(kUnavailable, "first"));
  EXPECT_THAT(window.AwaitRoom(absl::InfiniteFuture()),
              StatusIs(kUnavailable, "first"));
  EXPECT_EQ(NumberOf(window.Receive(absl::InfiniteFuture())), 1);
  EXPECT_THAT(window.Receive(absl::InfiniteFuture()),
              StatusIs(kUnavailable, "first"));
}

TEST(ReplyWindowTest, TheEndIsAwaited) {
  ReplyWindow window("echo", 4);
  EXPECT_FALSE(window.AwaitEnd(absl::ZeroDuration()));
  std::thread engine([&] { window.End(absl::UnavailableError("shut down")); });
  EXPECT_TRUE(window.AwaitEnd(absl::InfiniteDuration()));
  engine.join();
}

TEST(ReplyWindowTest, ThereAreNewsWhereReceiveWouldNotWait) {
  ReplyWindow window("echo", 4);
  EXPECT_TRUE(window.has_news());  // An error.
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(window.Sent());
  EXPECT_FALSE(window.has_news());
  window.Push(Numbered(1));
  EXPECT_TRUE(window.has_news());
  EXPECT_EQ(NumberOf(window.Receive(absl::InfinitePast())), 1);
  EXPECT_FALSE(window.has_news());
  window.End(absl::UnavailableError("shut down"));
  EXPECT_TRUE(window.has_news());
}

TEST(ReplyWindowTest, ACutLosesWhatWasNotReceived) {
  ReplyWindow window("echo", 4);
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(window.Sent());
  window.Push(Numbered(1));
  window.Cut(absl::UnavailableError("cut"));
  window.Push(Numbered(2));
  EXPECT_THAT(window.Receive(absl::InfiniteFuture()),
              StatusIs(kUnavailable, "cut"));
}

}  // namespace
}  // namespace rill
