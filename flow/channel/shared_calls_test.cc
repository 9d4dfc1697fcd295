// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/channel/shared_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::channel_internal {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kForever = absl::InfiniteDuration();
constexpr int64_t kWords = 100;
constexpr int64_t kBytes = kWords * sizeof(int64_t);

SharedCalls::Sizes SizesFor(int64_t callers) {
  return {.callers = callers, .question_bytes = kBytes, .answer_bytes = kBytes};
}

std::shared_ptr<SharedCalls> Make(int64_t callers) {
  return *SharedCalls::Create(SizesFor(callers));
}

void Fill(std::byte* to, int64_t value) {
  for (int64_t i = 0; i < kWords; ++i) {
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
  }
}

// -1 where not all words are the same.
int64_t ValueOf(const std::byte* from) {
  int64_t value;
  std::memcpy(&value, from, sizeof(value));
  for (int64_t i = 0; i < kWords; ++i) {
    if (std::memcmp(from + i * sizeof(value), from, sizeof(value)) != 0) {
      return -1;
    }
  }
  return value;
}

// Answers twice what is asked until it is closed; the number of rounds.
int64_t ServeAll(SharedCalls* calls, int64_t least) {
  std::vector<int64_t> who;
  int64_t rounds = 0;
  while (calls->AwaitQuestions(least, kForever, &who).ok()) {
    for (const int64_t caller : who) {
      Fill(calls->answer(caller), 2 * ValueOf(calls->question(caller)));
      calls->Answer(caller);
    }
    ++rounds;
  }
  return rounds;
}

void AskMany(SharedCalls* calls, int64_t caller, int64_t times) {
  RILL_ASSERT_OK(calls->Open(caller));
  for (int64_t i = 0; i < times; ++i) {
    Fill(calls->question(caller), 1000 * caller + i);
    RILL_ASSERT_OK(calls->Call(caller));
    ASSERT_EQ(ValueOf(calls->answer(caller)), 2 * (1000 * caller + i));
  }
  calls->CloseCaller(caller);
}

TEST(SharedCallsTest, EveryCallerGetsTheAnswersToItsQuestions) {
  const auto calls = Make(4);
  std::thread server([&] { ServeAll(calls.get(), 1); });
  std::vector<std::thread> callers;
  for (int64_t i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] { AskMany(calls.get(), i, 1000); });
  }
  for (std::thread& caller : callers) caller.join();
  calls->Close();
  server.join();
}

// Callers that have gone are not waited for: else this would not end.
TEST(SharedCallsTest, AServerThatWaitsForAllAnswersThemTogether) {
  const auto calls = Make(4);
  for (int64_t i = 0; i < 4; ++i) RILL_ASSERT_OK(calls->Open(i));
  std::vector<std::thread> callers;
  for (int64_t i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int64_t k = 0; k < 500 + i; ++k) {
        Fill(calls->question(i), k);
        ASSERT_TRUE(calls->Call(i).ok());
      }
      calls->CloseCaller(i);
    });
  }
  int64_t rounds = 0;
  std::thread server([&] { rounds = ServeAll(calls.get(), 4); });
  for (std::thread& caller : callers) caller.join();
  calls->Close();
  server.join();
  EXPECT_EQ(rounds, 503);
}

TEST(SharedCallsTest, AServerWaitsForMoreNoLongerThanItSays) {
  const auto calls = Make(3);
  for (const int64_t caller : {0, 1, 2}) RILL_ASSERT_OK(calls->Open(caller));
  std::thread first([&] { EXPECT_TRUE(calls->Call(2).ok()); });
  std::vector<int64_t> who;
  RILL_ASSERT_OK(calls->AwaitQuestions(2, absl::ZeroDuration(), &who));
  EXPECT_THAT(who, ElementsAre(2));
  std::thread second([&] { EXPECT_TRUE(calls->Call(0).ok()); });
  RILL_ASSERT_OK(calls->AwaitQuestions(2, kForever, &who));
  EXPECT_THAT(who, ElementsAre(0, 2));
  for (const int64_t caller : who) calls->Answer(caller);
  first.join();
  second.join();
}

TEST(SharedCallsTest, CloseCancelsCallersThatWaitAndThoseThatAskLater) {
  const auto calls = Make(2);
  RILL_ASSERT_OK(calls->Open(0));
  std::thread waits([&] {
    EXPECT_THAT(calls->Call(0), StatusIs(absl::StatusCode::kCancelled));
  });
  std::vector<int64_t> who;
  RILL_ASSERT_OK(calls->AwaitQuestions(1, kForever, &who));
  calls->Close();
  waits.join();
  EXPECT_THAT(calls->Open(1), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(calls->AwaitQuestions(1, kForever, &who),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(SharedCallsTest, APlaceHasOneCallerAtATime) {
  const auto calls = Make(2);
  RILL_ASSERT_OK(calls->Open(1));
  EXPECT_THAT(calls->Open(1), IsFailedPrecondition("caller 1"));
  EXPECT_THAT(calls->Open(2), IsOutOfRange());
  EXPECT_THAT(calls->Open(-1), IsOutOfRange());
  calls->CloseCaller(1);
  RILL_EXPECT_OK(calls->Open(1));
}

TEST(SharedCallsTest, AttachTakesTheDescriptorOfCallsOfTheSameSizesOnly) {
  const auto calls = Make(2);
  RILL_ASSERT_OK_AND_ASSIGN(const auto other,
                            SharedCalls::Attach(dup(calls->fd()), SizesFor(1)));
  EXPECT_EQ(other->callers(), 2);
  Fill(other->question(1), 7);
  EXPECT_EQ(ValueOf(calls->question(1)), 7);
  SharedCalls::Sizes sizes = SizesFor(2);
  sizes.answer_bytes += 1;
  EXPECT_THAT(SharedCalls::Attach(dup(calls->fd()), sizes).status(),
              IsInvalidArgument());
  EXPECT_THAT(
      SharedCalls::Attach(open("/dev/null", O_RDONLY), SizesFor(2)).status(),
      IsInvalidArgument());
}

TEST(SharedCallsTest, CreateRefusesNumbersThatCannotBe) {
  for (const int64_t callers : {0, 4097}) {
    EXPECT_THAT(SharedCalls::Create(SizesFor(callers)).status(),
                IsInvalidArgument());
  }
  EXPECT_THAT(
      SharedCalls::Create({.callers = 1, .question_bytes = -1}).status(),
      IsInvalidArgument());
}

}  // namespace
}  // namespace rill::channel_internal
