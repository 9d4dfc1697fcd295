// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/rate_limiter.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::unique_ptr<RateLimiter> Make(const RateLimiter::Options& options) {
  return *RateLimiter::Create(options);
}

absl::Status Insert(RateLimiter* limiter, int64_t n = 1) {
  RILL_ASSIGN_OR_RETURN(auto permit,
                        limiter->AwaitInsert(n, absl::InfinitePast()));
  permit.Commit();
  return absl::OkStatus();
}

absl::Status Sample(RateLimiter* limiter, int64_t n = 1) {
  RILL_ASSIGN_OR_RETURN(auto permit,
                        limiter->AwaitSample(n, absl::InfinitePast()));
  permit.Commit();
  return absl::OkStatus();
}

absl::Status RunExample(Storage* storage, const TensorDict& batch,
                        RateLimiter* limiter, absl::Time deadline) {
  RILL_ASSIGN_OR_RETURN(auto permit, limiter->AwaitInsert(10, deadline));
  RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
  permit.Commit();
  return absl::OkStatus();
}

TEST(RateLimiterTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto limiter,
                            RateLimiter::Create(RateLimiter::Queue(100)));
  const auto storage = MakeStorage(100);
  const absl::Time deadline = absl::InfiniteFuture();
  RILL_EXPECT_OK(
      RunExample(storage.get(), NumberedSteps(1, 10), limiter.get(), deadline));
  EXPECT_EQ(limiter->GetStats().done.inserts, 10);
  // Two lanes do not fit in one: the permit went back.
  EXPECT_THAT(
      RunExample(storage.get(), NumberedSteps(2, 5), limiter.get(), deadline),
      IsInvalidArgument());
  EXPECT_EQ(limiter->GetStats().done.inserts, 10);
  EXPECT_EQ(limiter->GetStats().inserts.in_flight, 0);
}

// --- The presets, as Reverb's ------------------------------------------------

TEST(RateLimiterTest, MinSizeHoldsSamplesOnlyUntilThereAreRows) {
  const auto limiter = Make(RateLimiter::MinSize(3));
  RILL_EXPECT_OK(Insert(limiter.get(), 2));
  EXPECT_FALSE(limiter->CanSample(1));
  RILL_EXPECT_OK(Insert(limiter.get()));
  RILL_EXPECT_OK(Sample(limiter.get(), 1000000));
  RILL_EXPECT_OK(Insert(limiter.get(), 1000000));
  RILL_EXPECT_OK(limiter->DidDelete(1000001));
  EXPECT_FALSE(limiter->CanSample(1));
}

TEST(RateLimiterTest, SampleToInsertRatioHoldsBothToTheRatio) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const RateLimiter::Options options,
      RateLimiter::SampleToInsertRatio(/*samples_per_insert=*/4,
                                       /*min_size=*/10, /*error_buffer=*/8));
  EXPECT_EQ(options.min_diff, 32);
  EXPECT_EQ(options.max_diff, 48);
  const auto limiter = Make(options);
  RILL_EXPECT_OK(Insert(limiter.get(), 10));
  RILL_EXPECT_OK(Insert(limiter.get(), 2));
  EXPECT_FALSE(limiter->CanInsert(1));  // diff is 48.
  RILL_EXPECT_OK(Sample(limiter.get(), 3));
  EXPECT_FALSE(limiter->CanInsert(1));
  RILL_EXPECT_OK(Sample(limiter.get()));
  RILL_EXPECT_OK(Insert(limiter.get()));
  RILL_EXPECT_OK(Sample(limiter.get(), 16));
  EXPECT_FALSE(limiter->CanSample(1));  // diff is 32.
  // Below the least size inserts go, however far off the ratio is.
  RILL_EXPECT_OK(limiter->SetCounts({.inserts = 100, .deletes = 95}));
  EXPECT_TRUE(limiter->CanInsert(5));
  EXPECT_FALSE(limiter->CanInsert(6));
}

TEST(RateLimiterTest, StatsSayHowManySamplesWouldGo) {
  const auto limiter = Make(
      {.samples_per_insert = 1.5, .min_size_to_sample = 4, .min_diff = -7.25});
  const auto may = [&] { return limiter->GetStats().may_sample; };
  EXPECT_EQ(may(), 0);
  RILL_EXPECT_OK(Insert(limiter.get(), 5));
  for (const int64_t left : {14, 10, 0}) {  // 5 * 1.5 + 7.25 is 14.75.
    EXPECT_EQ(may(), left);
    EXPECT_TRUE(left == 0 || limiter->CanSample(left));
    EXPECT_FALSE(limiter->CanSample(left + 1));
    if (left > 0) {
      RILL_EXPECT_OK(Sample(limiter.get(), left == 14 ? 4 : 10));
    }
  }
  RILL_EXPECT_OK(limiter->SetOptions(RateLimiter::MinSize(1)));
  EXPECT_EQ(may(), kMaxWritten - 14);
  limiter->Close();
  EXPECT_EQ(may(), 0);
}

TEST(RateLimiterTest, AQueueHoldsSoManyAndGivesEachOnce) {
  const auto limiter = Make(RateLimiter::Queue(3));
  EXPECT_FALSE(limiter->CanSample(1));
  RILL_EXPECT_OK(Insert(limiter.get(), 3));
  EXPECT_FALSE(limiter->CanInsert(1));
  RILL_EXPECT_OK(Sample(limiter.get(), 2));
  RILL_EXPECT_OK(limiter->DidDelete(2));
  EXPECT_TRUE(limiter->CanInsert(2));
  EXPECT_FALSE(limiter->CanSample(2));
  RILL_EXPECT_OK(Sample(limiter.get()));
  RILL_EXPECT_OK(limiter->DidDelete(1));
  EXPECT_FALSE(limiter->CanSample(1));
}

// --- Permits -----------------------------------------------------------------

TEST(RateLimiterTest, APermitInFlightCountsAgainstItsOwnKindOnly) {
  const auto limiter = Make(RateLimiter::Queue(2));
  RILL_ASSERT_OK_AND_ASSIGN(auto inserts,
                            limiter->AwaitInsert(2, absl::InfinitePast()));
  EXPECT_FALSE(limiter->CanInsert(1));
  EXPECT_FALSE(limiter->CanSample(1));  // No row is there yet.
  inserts.Commit();
  inserts.Commit();
  EXPECT_EQ(limiter->GetStats().done, (RateLimiter::Counts{.inserts = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(auto samples,
                            limiter->AwaitSample(2, absl::InfinitePast()));
  EXPECT_FALSE(limiter->CanSample(1));
  EXPECT_FALSE(limiter->CanInsert(1));  // They may go back yet.
  samples = std::move(inserts);         // Which does that.
  EXPECT_TRUE(limiter->CanSample(2));
  EXPECT_EQ(limiter->GetStats().done, (RateLimiter::Counts{.inserts = 2}));
}

// --- Errors ------------------------------------------------------------------

TEST(RateLimiterTest, ATimeoutTellsEveryNumber) {
  RILL_ASSERT_OK_AND_ASSIGN(const RateLimiter::Options options,
                            RateLimiter::SampleToInsertRatio(2, 5, 4));
  const auto limiter = Make(options);
  RILL_EXPECT_OK(Insert(limiter.get(), 6));
  RILL_EXPECT_OK(limiter->DidDelete(2));
  RILL_ASSERT_OK_AND_ASSIGN(auto permit,
                            limiter->AwaitInsert(1, absl::InfinitePast()));
  EXPECT_THAT(limiter->AwaitSample(3, absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("RateLimiter::AwaitSample: 3 samples"),
                             HasSubstr("inserts = 6 (and 1 in flight)"),
                             HasSubstr("samples = 0 (and 0 in flight)"),
                             HasSubstr("deletes = 2"),
                             HasSubstr("size = 4 of min_size_to_sample = 5"),
                             HasSubstr("diff = 12 of [6, 14]"),
                             HasSubstr("samples_per_insert = 2"))));
  EXPECT_EQ(limiter->GetStats().samples.waits, 0);
}

TEST(RateLimiterTest, ABatchThatCouldNeverGoIsRefusedAtOnce) {
  const auto limiter = Make(RateLimiter::Queue(4));
  EXPECT_THAT(limiter->AwaitInsert(5, absl::InfiniteFuture()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got 5 inserts"),
                             HasSubstr("smaller batches"))));
  EXPECT_THAT(limiter->AwaitSample(5, absl::InfiniteFuture()),
              IsInvalidArgument("got 5 samples"));
  for (const int64_t n : {int64_t{0}, int64_t{-1}, kMaxWritten + 1}) {
    EXPECT_THAT(limiter->AwaitInsert(n, absl::InfiniteFuture()),
                IsInvalidArgument("want [1, "));
    EXPECT_THAT(limiter->AwaitSample(n, absl::InfiniteFuture()),
                IsInvalidArgument("want [1, "));
    EXPECT_FALSE(limiter->CanInsert(n));
    EXPECT_FALSE(limiter->CanSample(n));
  }
  // A write that is wider than the range may still go while there are few rows.
  RILL_ASSERT_OK_AND_ASSIGN(const RateLimiter::Options options,
                            RateLimiter::SampleToInsertRatio(1, 100, 10));
  const auto ratio = Make(options);
  RILL_EXPECT_OK(Insert(ratio.get(), 105));
  EXPECT_THAT(Insert(ratio.get(), 105), IsInvalidArgument());
  // So may what has the least size at most, and no longer.
  const auto half = Make(options);
  for (int i = 0; i < 2; ++i) RILL_EXPECT_OK(Insert(half.get(), 50));
  EXPECT_THAT(Insert(half.get(), 50), IsInvalidArgument("got 50 inserts"));
}

TEST(RateLimiterTest, OptionsThatLeaveSomebodyWaitingForEverAreRefused) {
  const auto refused = [](const RateLimiter::Options& options,
                          const char* name) {
    EXPECT_THAT(RateLimiter::Create(options), IsInvalidArgument(name));
    const auto limiter = Make({});
    EXPECT_THAT(limiter->SetOptions(options), IsInvalidArgument(name));
    EXPECT_EQ(limiter->options().max_diff, kInfinity);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double ratio : {0.0, -1.0, kInfinity, nan}) {
    refused({.samples_per_insert = ratio}, "samples_per_insert");
    EXPECT_THAT(RateLimiter::SampleToInsertRatio(ratio, 1, kInfinity),
                IsInvalidArgument());
  }
  refused({.min_size_to_sample = 0}, "min_size_to_sample");
  refused({.min_diff = nan}, "min_diff");
  refused({.min_diff = kInfinity}, "min_diff");
  refused({.max_diff = nan}, "max_diff");
  refused({.max_diff = -kInfinity}, "max_diff");
  refused({.samples_per_insert = 3, .min_diff = 0, .max_diff = 2},
          "max_diff - min_diff: got 2 - 0 = 2, want >= 3");
  refused({.min_diff = 0.5, .max_diff = 2}, "want >= 2");
  refused(RateLimiter::Queue(0), "max_diff - min_diff");
  refused(RateLimiter::MinSize(0), "min_size_to_sample");
  EXPECT_THAT(RateLimiter::SampleToInsertRatio(8, 10, 7.5),
              IsInvalidArgument("got 7.5, want >= "));
  EXPECT_THAT(RateLimiter::SampleToInsertRatio(0.5, 10, 0.75),
              IsInvalidArgument("error_buffer"));
  EXPECT_THAT(RateLimiter::SampleToInsertRatio(1, 10, nan),
              IsInvalidArgument("error_buffer"));
  EXPECT_THAT(RateLimiter::SampleToInsertRatio(1, 0, 2),
              IsInvalidArgument("min_size_to_sample"));
}

TEST(RateLimiterTest, CountsThatCannotBeAreRefused) {
  const auto limiter = Make({});
  RILL_EXPECT_OK(limiter->DidInsert(5));
  EXPECT_THAT(limiter->DidDelete(6), IsInvalidArgument("got 6, want [0, 5]"));
  EXPECT_THAT(limiter->DidDelete(-1), IsInvalidArgument());
  EXPECT_THAT(limiter->DidInsert(-1), IsInvalidArgument());
  EXPECT_THAT(limiter->DidInsert(kMaxWritten), IsInvalidArgument());
  for (const RateLimiter::Counts& counts :
       std::vector<RateLimiter::Counts>{{.inserts = -1},
                                        {.samples = -1},
                                        {.deletes = -1},
                                        {.inserts = 3, .deletes = 4},
                                        {.inserts = kMaxWritten + 1},
                                        {.samples = kMaxWritten + 1}}) {
    EXPECT_THAT(limiter->SetCounts(counts), IsInvalidArgument("SetCounts: "));
  }
  EXPECT_EQ(limiter->GetStats().done, (RateLimiter::Counts{.inserts = 5}));
}

TEST(RateLimiterTest, ASavedStateGoesOnWhereItWas) {
  const auto limiter = Make(RateLimiter::Queue(3));
  RILL_EXPECT_OK(Insert(limiter.get(), 3));
  RILL_EXPECT_OK(Sample(limiter.get(), 2));
  RILL_EXPECT_OK(limiter->DidDelete(1));
  const auto other = Make(RateLimiter::Queue(3));
  RILL_EXPECT_OK(other->LoadState(limiter->SaveState()));
  EXPECT_EQ(other->DebugString(), limiter->DebugString());
  EXPECT_TRUE(other->CanSample(1));
  EXPECT_FALSE(other->CanSample(2));
  EXPECT_FALSE(other->CanInsert(3));
}

TEST(RateLimiterTest, StatesThatDoNotFitChangeNothing) {
  const auto limiter = Make({});
  RILL_EXPECT_OK(limiter->DidInsert(5));
  const std::string before = limiter->SaveState();
  SavedState state("RateLimiter", 1);
  state.Set("inserts", int64_t{3});
  state.Set("samples", int64_t{0});
  EXPECT_THAT(limiter->LoadState(state.Encode()),
              IsFailedPrecondition("deletes"));
  state.Set("deletes", int64_t{4});
  EXPECT_THAT(limiter->LoadState(state.Encode()),
              IsDataLoss("deletes: got 4, want [0, 3]"));
  for (SavedState other : {SavedState("RateLimiter", 2), SavedState("No", 1)}) {
    for (const char* name : {"inserts", "samples", "deletes"}) {
      other.Set(name, int64_t{3});
    }
    EXPECT_THAT(limiter->LoadState(other.Encode()), IsFailedPrecondition());
  }
  EXPECT_EQ(limiter->SaveState(), before);
}

// --- Properties --------------------------------------------------------------

// Reverb's two rules, with every count anew from a list of what happened.
struct Model {
  struct Event {
    char kind;  // i, s, d; I, S: in flight.
    int64_t n;
  };

  double Sum(const char* kinds) const {
    double sum = 0;
    for (const Event& event : events) {
      for (const char* kind = kinds; *kind != 0; ++kind) {
        if (event.kind == *kind) sum += static_cast<double>(event.n);
      }
    }
    return sum;
  }
  bool CanInsert(double n) const {
    return Sum("iI") + n - Sum("d") <=
               static_cast<double>(options.min_size_to_sample) ||
           (Sum("iI") + n) * options.samples_per_insert - Sum("s") <=
               options.max_diff;
  }
  bool CanSample(double n) const {
    return Sum("i") - Sum("d") >=
               static_cast<double>(options.min_size_to_sample) &&
           Sum("i") * options.samples_per_insert - Sum("sS") - n >=
               options.min_diff;
  }

  RateLimiter::Options options;
  std::vector<Event> events = {};
};

RateLimiter::Options RandomOptions(const Rng& rng, uint64_t seed) {
  RateLimiter::Options options;
  options.samples_per_insert =
      static_cast<double>(1 + rng.UniformInt(seed, 0, 16)) / 4;
  options.min_size_to_sample = 1 + rng.UniformInt(seed, 1, 6);
  options.min_diff = static_cast<double>(rng.UniformInt(seed, 2, 40) - 10) / 4;
  options.max_diff = options.min_diff + 1 + options.samples_per_insert +
                     static_cast<double>(rng.UniformInt(seed, 3, 30)) / 4;
  return options;
}

TEST(RateLimiterTest, LetsGoWhatAPlainModelLetsGo) {
  const Rng rng(11);
  int64_t refused = 0;
  int64_t given = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Model model = {.options = RandomOptions(rng, seed)};
    const auto limiter = Make(model.options);
    std::vector<std::pair<size_t, RateLimiter::Permit>> permits;
    for (uint32_t i = 10; i < 310; i += 3) {
      const int64_t n = 1 + rng.UniformInt(seed, i, 4);
      ASSERT_EQ(limiter->CanInsert(n), model.CanInsert(n));
      ASSERT_EQ(limiter->CanSample(n), model.CanSample(n));
      switch (rng.UniformInt(seed, i + 1, 8)) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const bool is_insert = rng.UniformInt(seed, i + 2, 2) == 0;
          const bool can = is_insert ? model.CanInsert(n) : model.CanSample(n);
          auto permit = is_insert
                            ? limiter->AwaitInsert(n, absl::InfinitePast())
                            : limiter->AwaitSample(n, absl::InfinitePast());
          ASSERT_EQ(permit.ok(), can) << permit.status();
          ++(can ? given : refused);
          if (!can) break;
          permits.emplace_back(model.events.size(), *std::move(permit));
          model.events.push_back({is_insert ? 'I' : 'S', n});
          break;
        }
        case 4:
        case 5:
        case 6: {  // The oldest permit ends.
          if (permits.empty()) break;
          const bool did = rng.UniformInt(seed, i + 2, 4) > 0;
          Model::Event& event = model.events[permits[0].first];
          event.kind = !did ? '-' : event.kind == 'I' ? 'i' : 's';
          if (did) permits[0].second.Commit();
          permits.erase(permits.begin());
          break;
        }
        default: {
          const int64_t size =
              static_cast<int64_t>(model.Sum("i") - model.Sum("d"));
          if (n > size) break;
          RILL_ASSERT_OK(limiter->DidDelete(n));
          model.events.push_back({'d', n});
        }
      }
    }
    EXPECT_EQ(static_cast<double>(limiter->GetStats().done.samples),
              model.Sum("s"));
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(given, 300);
}

TEST(RateLimiterTest, OfAcceptedOptionsOneSideMayAlwaysGo) {
  const Rng rng(12);
  int64_t narrow = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const double unit = seed % 2 == 0 ? 1.0 : 0.25;
    const auto random = [&](uint32_t draw, int64_t bound) {
      return unit * static_cast<double>(rng.UniformInt(seed, draw, bound));
    };
    RateLimiter::Options options = RandomOptions(rng, seed);
    options.samples_per_insert = random(4, 6) + unit;
    options.min_diff = random(5, 20);
    options.max_diff = options.min_diff + random(6, 9);
    auto limiter = RateLimiter::Create(options);
    if (!limiter.ok()) continue;
    narrow +=
        options.max_diff - options.min_diff < 1 + options.samples_per_insert;
    for (uint32_t i = 10; i < 60; ++i) {
      const bool insert_first = rng.UniformInt(seed, i, 2) == 0;
      absl::Status status =
          insert_first ? Insert(limiter->get()) : Sample(limiter->get());
      if (status.ok()) continue;
      status = insert_first ? Sample(limiter->get()) : Insert(limiter->get());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  EXPECT_GT(narrow, 20);
}

TEST(RateLimiterTest, WhatIsRefusedAtOnceDoesNotGoLater) {
  const Rng rng(13);
  int64_t refused = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto limiter = Make(RandomOptions(rng, seed));
    RateLimiter::Counts counts;
    counts.inserts = rng.UniformInt(seed, 4, 12);
    counts.deletes = rng.UniformInt(seed, 5, counts.inserts + 1);
    counts.samples = rng.UniformInt(seed, 6, 20);
    RILL_ASSERT_OK(limiter->SetCounts(counts));
    const int64_t n = 1 + rng.UniformInt(seed, 7, 40);
    const bool is_insert = seed % 2 == 0;
    absl::Status status =
        is_insert ? Insert(limiter.get(), n) : Sample(limiter.get(), n);
    const bool is_refused = absl::IsInvalidArgument(status);
    refused += is_refused;
    while (!status.ok()) {
      if (!(is_insert ? Sample(limiter.get()) : Insert(limiter.get())).ok()) {
        break;
      }
      status = is_insert ? Insert(limiter.get(), n) : Sample(limiter.get(), n);
      EXPECT_FALSE(is_refused && status.ok()) << limiter->DebugString();
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace rill
