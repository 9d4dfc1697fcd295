// SPDX-License-Identifier: Apache-2.0
// A rate limiter that the buffer asks.
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDeadlineExceeded = absl::StatusCode::kDeadlineExceeded;
constexpr auto kCancelled = absl::StatusCode::kCancelled;

struct Limited {
  std::shared_ptr<RateLimiter> limiter;
  std::unique_ptr<ReplayBuffer> buffer;
};

Limited MakeLimited(const RateLimiter::Options& limit, absl::Duration timeout,
                    int64_t prefetch = 0,
                    std::unique_ptr<BatchTransform> transform = nullptr) {
  Limited limited;
  limited.limiter = *RateLimiter::Create(limit);
  ReplayBuffer::Options options;
  options.storage = MakeStorage(20);
  options.sampler = MakeUniformSampler();
  if (transform != nullptr) options.transforms.push_back(std::move(transform));
  options.batch_size = 4;
  options.prefetch = prefetch;
  options.rate_limiter = limited.limiter;
  options.rate_limit_timeout = timeout;
  auto buffer = ReplayBuffer::Create(std::move(options));
  RILL_EXPECT_OK(buffer);
  limited.buffer = *std::move(buffer);
  return limited;
}

RateLimiter::Counts Done(const Limited& limited) {
  const RateLimiter::Stats stats = limited.limiter->GetStats();
  EXPECT_EQ(stats.inserts.in_flight, 0);
  EXPECT_EQ(stats.samples.in_flight, 0);
  return stats.done;
}

TEST(ReplayBufferRateLimitTest, RowsCountWhenWrittenItemsWhenHandedOut) {
  for (const int64_t prefetch : {0, 3}) {
    Limited limited =
        MakeLimited(RateLimiter::MinSize(4), absl::ZeroDuration(), prefetch);
    RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 6)));
    RILL_ASSERT_OK(limited.buffer->Sample());
    RILL_ASSERT_OK(limited.buffer->Sample(3));
    const RateLimiter::Counts want = {.inserts = 6, .samples = 7};
    EXPECT_EQ(Done(limited), want);
  }
}

TEST(ReplayBufferRateLimitTest, RowsThatTheWriterDropsDoNotCount) {
  const std::shared_ptr<RateLimiter> limiter =
      *RateLimiter::Create(RateLimiter::MinSize(4));
  RILL_ASSERT_OK_AND_ASSIGN(auto writer,
                            TopKWriter::Create({.rank_key = "action", .k = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      ReplayBuffer::Create({.storage = MakeStorage(20),
                            .sampler = MakeUniformSampler(),
                            .writer = std::move(writer),
                            .rate_limiter = limiter,
                            .rate_limit_timeout = absl::ZeroDuration()}));
  // Steps 10 to 15, of which three stay, then lower ones, of which none does.
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 6, 10)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 6)));
  EXPECT_EQ(limiter->GetStats().done, RateLimiter::Counts{.inserts = 3});
  EXPECT_EQ(limiter->GetStats().inserts.in_flight, 0);
  EXPECT_THAT(buffer->Sample(2), IsDeadlineExceeded());
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 1, 20)));
  RILL_ASSERT_OK(buffer->Sample(2));
}

TEST(ReplayBufferRateLimitTest, ClearForgetsTheCounts) {
  Limited limited = MakeLimited(RateLimiter::Queue(8), absl::ZeroDuration());
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 8)));
  RILL_ASSERT_OK(limited.buffer->Clear());
  EXPECT_EQ(Done(limited), RateLimiter::Counts());
  EXPECT_THAT(limited.buffer->Sample(), IsDeadlineExceeded());
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 6)));
  RILL_ASSERT_OK(limited.buffer->Sample());
}

TEST(ReplayBufferRateLimitTest, DeadlineHasTheStateAndCostsNoBatch) {
  Limited limited = MakeLimited(RateLimiter::Queue(8), absl::ZeroDuration(), 2);
  EXPECT_THAT(limited.buffer->Sample(),
              StatusIs(kDeadlineExceeded,
                       AllOf(HasSubstr("4 samples could not go in time"),
                             HasSubstr("inserts = 0"))));
  EXPECT_EQ(limited.buffer->batch_number(), 0u);
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(limited.buffer->Extend(NumberedSteps(1, 1, 8)),
              StatusIs(kDeadlineExceeded,
                       AllOf(HasSubstr("1 inserts could not go in time"),
                             HasSubstr("inserts = 8"))));
  EXPECT_EQ(limited.buffer->size(), 8);
  RILL_ASSERT_OK(limited.buffer->Sample());
  RILL_ASSERT_OK(limited.buffer->Sample());
  EXPECT_THAT(limited.buffer->Sample(), IsDeadlineExceeded());
  EXPECT_EQ(limited.buffer->batch_number(), 4u);
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 4, 8)));
  RILL_ASSERT_OK(limited.buffer->Sample());
}

// A waiting call is let go by `act`, called once it waits.
void ExpectLetGo(const Limited& limited, bool is_insert, absl::StatusCode want,
                 const std::function<void()>& act) {
  absl::Status status;
  std::thread waiter([&] {
    status = is_insert ? limited.buffer->Extend(NumberedSteps(1, 4)).status()
                       : limited.buffer->Sample().status();
  });
  for (;;) {
    const RateLimiter::Stats stats = limited.limiter->GetStats();
    if ((is_insert ? stats.inserts : stats.samples).waiting == 1) break;
    std::this_thread::yield();
  }
  act();
  waiter.join();
  EXPECT_EQ(status.code(), want) << status;
}

TEST(ReplayBufferRateLimitTest, CloseWakesASampleAndAnExtend) {
  for (const bool is_insert : {false, true}) {
    Limited limited =
        MakeLimited(RateLimiter::Queue(8), absl::InfiniteDuration());
    if (is_insert) {
      RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 8)));
    }
    ExpectLetGo(limited, is_insert, kCancelled,
                [&] { limited.buffer->Close(); });
    EXPECT_THAT(limited.buffer->Sample(), StatusIs(kCancelled));
    EXPECT_THAT(limited.buffer->Extend(NumberedSteps(1, 1)),
                StatusIs(kCancelled));
  }
}

// A waiting call is in nobody's way, Save's and Clear's neither.
TEST(ReplayBufferRateLimitTest, OtherCallsGoWhileOneWaits) {
  Limited limited =
      MakeLimited(RateLimiter::MinSize(4), absl::InfiniteDuration());
  ExpectLetGo(limited, /*is_insert=*/false, absl::StatusCode::kOk, [&] {
    RILL_EXPECT_OK(limited.buffer->Clear());
    RILL_EXPECT_OK(limited.buffer->Extend(NumberedSteps(1, 5)));
  });
}

TEST(ReplayBufferRateLimitTest, NewOptionsActOnWhoWaits) {
  Limited limited =
      MakeLimited(RateLimiter::MinSize(10), absl::InfiniteDuration());
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 5)));
  ExpectLetGo(limited, /*is_insert=*/false, absl::StatusCode::kOk, [&] {
    RILL_EXPECT_OK(limited.limiter->SetOptions(RateLimiter::MinSize(5)));
  });
}

TEST(ReplayBufferRateLimitTest, WhatFailsGivesItsPermitBack) {
  int call = 0;
  auto fails_first = *FunctionTransform::Create(
      {.forward = [&call](TensorDict*) -> absl::Status {
        if (call++ == 0) return absl::InternalError("no such luck");
        return absl::OkStatus();
      }});
  Limited limited = MakeLimited(RateLimiter::Queue(8), absl::ZeroDuration(), 0,
                                std::move(fails_first));
  // Two lanes where the storage has one.
  EXPECT_THAT(limited.buffer->Extend(NumberedSteps(2, 4)), IsInvalidArgument());
  EXPECT_EQ(Done(limited), RateLimiter::Counts());
  RILL_ASSERT_OK(limited.buffer->Extend(NumberedSteps(1, 8)));
  EXPECT_THAT(limited.buffer->Sample(), IsInternal());
  EXPECT_EQ(Done(limited), RateLimiter::Counts({.inserts = 8}));
  RILL_ASSERT_OK(limited.buffer->Sample());
  RILL_ASSERT_OK(limited.buffer->Sample());
  EXPECT_EQ(Done(limited), RateLimiter::Counts({.inserts = 8, .samples = 8}));
}

TEST(ReplayBufferRateLimitTest, TimeoutBelowZeroIsRefused) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(4),
                                    .sampler = MakeUniformSampler(),
                                    .rate_limit_timeout = -absl::Seconds(1)}),
              IsInvalidArgument("rate_limit_timeout: got -1s"));
}

}  // namespace
}  // namespace rill
