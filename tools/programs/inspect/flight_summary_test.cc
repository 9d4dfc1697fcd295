// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/flight_summary.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/flow/decision_log.h"
#include "rill/recorder/flight_log.h"
#include "rill/testing/status_matchers.h"

namespace rill::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Kind = Decision::Kind;

FlightEvent At(int64_t ms, Kind kind, int64_t part,
               std::vector<int64_t> numbers) {
  return {.decision = {.kind = kind, .part = part, .numbers = numbers},
          .at = absl::Milliseconds(ms)};
}

// Two workers; one is killed. A buffer gets rows, and gives batches.
std::vector<FlightEvent> ShortRun() {
  const auto arrival = [](int64_t worker, int64_t version) {
    return Arrival{.worker = worker, .steps = 4, .versions = {{4, version}}}
        .ToNumbers();
  };
  return {
      {.decision = {.kind = Kind::kPart, .part = 0}, .text = "weights"},
      {.decision = {.kind = Kind::kPart, .part = 1}, .text = "collector"},
      At(0, Kind::kPublish, 0, {5}),
      At(72, Kind::kArrival, 1, arrival(0, 5)),
      At(100, Kind::kWrite, 2, {0, 2, 4}),
      At(144, Kind::kArrival, 1, arrival(1, 3)),
      At(200, Kind::kReplace, 1, {1, 0, 9, 0}),
      At(300, Kind::kDraw, 2, {32}),
      At(310, Kind::kPriorities, 2,
         PriorityCounts::Of({0, 1, 1.5f}).ToNumbers()),
      At(360, Kind::kArrival, 1, arrival(0, 5)),
      At(720, Kind::kEnd, 0, {}),
  };
}

FlightSummary SummaryOf(const std::vector<FlightEvent>& events) {
  FlightSummary summary;
  for (const FlightEvent& event : events) summary.Add(event);
  return summary;
}

std::string LogOf(const std::vector<FlightEvent>& events) {
  FlightEncoder encoder;
  std::string log, bytes;
  RILL_EXPECT_OK(encoder.Begin(
      {.program = "/bin/run", .arguments = {"--seed=1", "\x1b[2J"}}, &log));
  for (const FlightEvent& event : events) {
    RILL_EXPECT_OK(encoder.Add(event, &bytes));
    log += bytes;
  }
  return log;
}

TEST(FlightSummaryTest, CountsWhatTheEventsAreOf) {
  const FlightSummary summary = SummaryOf(ShortRun());
  EXPECT_EQ(summary.events(), 11);
  EXPECT_EQ(summary.length(), absl::Milliseconds(720));
  EXPECT_TRUE(summary.has_ended());
  EXPECT_THAT(summary.parts(), ElementsAre("weights", "collector"));
  const auto& first = summary.workers().at({1, 0});
  EXPECT_EQ(first.batches, 2);
  EXPECT_EQ(first.steps, 8);
  EXPECT_EQ(first.age.max, 0);
  const auto& second = summary.workers().at({1, 1});
  EXPECT_EQ(second.age.mean(), 2);
  EXPECT_THAT(second.statuses, ElementsAre(Pair(9, 1)));
  EXPECT_EQ(summary.CountOf(Kind::kWrite).items, 8);
  EXPECT_EQ(summary.CountOf(Kind::kDraw).items, 32);
  // 72, 144 - 100 and 360 - 310.
  EXPECT_EQ(summary.waited(), absl::Milliseconds(72 + 44 + 50));
  EXPECT_EQ(summary.Ages().max, 2);
}

TEST(FlightSummaryTest, PrioritiesAreThoseOfTheLastUpdates) {
  FlightSummary summary = SummaryOf(ShortRun());
  EXPECT_THAT(summary.Priorities(),
              ElementsAre(Pair(FlightSummary::kZero, 1), Pair(0, 2)));
  for (size_t i = 0; i < FlightSummary::kUpdates; ++i) {
    summary.Add(
        At(400, Kind::kPriorities, 2, PriorityCounts::Of({4}).ToNumbers()));
  }
  EXPECT_THAT(summary.Priorities(),
              ElementsAre(Pair(2, FlightSummary::kUpdates)));
}

TEST(FlightSummaryTest, EventsThatSayNothingCountAsEventsAlone) {
  const FlightSummary summary = SummaryOf(
      {At(1, Kind::kArrival, 1, {}), At(2, Kind::kReplace, 1, {}),
       At(3, Kind::kWrite, 1, {1}), At(4, Kind::kPriorities, 1, {-1})});
  EXPECT_EQ(summary.events(), 4);
  EXPECT_TRUE(summary.workers().empty());
}

TEST(FlightSummaryTest, HostileNumbersEndAtTheLargest) {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  constexpr int64_t kFew = std::numeric_limits<int64_t>::min();
  std::vector<FlightEvent> events;
  for (const int64_t a : {kMany, kFew, int64_t{1} << 31}) {
    for (const int64_t b : {kMany, kFew, int64_t{1} << 31}) {
      events.push_back(At(1, Kind::kPublish, 0, {a}));
      events.push_back(At(1, Kind::kWrite, 0, {a, b, a}));
      events.push_back(At(1, Kind::kDraw, 0, {a}));
      events.push_back(At(1, Kind::kPriorities, 0, {b, 0, a, a, b}));
      events.push_back(At(1, Kind::kReplace, a, {b, a, a, b}));
      events.push_back(At(1, Kind::kArrival, b, {0, a, a, b, a, b}));
    }
  }
  std::vector<FlightEvent> all;
  for (int i = 0; i < 100; ++i) {
    all.insert(all.end(), events.begin(), events.end());
  }
  const FlightSummary summary = SummaryOf(all);
  EXPECT_GT(summary.CountOf(Kind::kWrite).items, 0);
  EXPECT_GT(summary.CountOf(Kind::kDraw).items, 0);
  EXPECT_GE(summary.Ages().max, summary.Ages().min);
}

TEST(FlightSummaryTest, WhatThereIsTooManyOfCountsAsEvents) {
  FlightSummary summary;
  const auto most = static_cast<int64_t>(FlightSummary::kMost);
  std::vector<FlightEvent> events;
  for (int64_t i = 0; i < most + 100; ++i) {
    events.push_back(At(1, Kind::kReplace, i, {i, 0, i, 0}));
    events.push_back(At(1, Kind::kReplace, 0, {0, 0, i, 0}));
    events.push_back(At(1, Kind::kPart, i, {}));
  }
  for (const FlightEvent& event : events) summary.Add(event);
  EXPECT_EQ(summary.events(), 3 * (most + 100));
  EXPECT_EQ(summary.workers().size(), most);
  EXPECT_EQ(summary.counts().size(), most);
  EXPECT_EQ(summary.parts().size(), most);
  EXPECT_EQ(summary.workers().at({0, 0}).statuses.size(),
            FlightSummary::kMostStatuses);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TimelineText(LogOf(events), false));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 2 * most + 100);
}

TEST(TimelineTest, ShowsWhenEachWorkerGaveBatchesAndEnded) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TimelineText(LogOf(ShortRun()), false));
  EXPECT_THAT(text, HasSubstr("/bin/run --seed=1 \\x1b[2J\n"));
  EXPECT_THAT(text, HasSubstr("end     by itself\n"));
  EXPECT_THAT(text, HasSubstr(", 11 events in "));
  EXPECT_THAT(text, HasSubstr(" an event\n"));
  // There are 72 columns of 10 ms.
  const std::string blank(72, ' ');
  std::string line = blank;
  line[7] = line[36] = '1';
  EXPECT_THAT(text, HasSubstr("  1 worker 0    |" + line +
                              "| 2 batches, 8 steps, 0.0 versions behind"));
  line = blank;
  line[14] = '1';
  line[20] = 'X';
  EXPECT_THAT(text, HasSubstr("  1 worker 1    |" + line + "| 1 batches"));
  EXPECT_THAT(text, HasSubstr("1 ends: signal 9 x 1"));
  EXPECT_THAT(text, HasSubstr("| 1 of 32 rows"));
  EXPECT_THAT(text, HasSubstr("a column is 0.010 s"));
}

TEST(TimelineTest, SaysHowALogWithoutAnEndEnds) {
  std::vector<FlightEvent> events = ShortRun();
  events.pop_back();
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TimelineText(LogOf(events) + "\x08torn", true));
  EXPECT_THAT(text, HasSubstr("none: it crashed, or goes on; 5 bytes behind"));
  EXPECT_THAT(text, HasSubstr("0.300 s  draw of part 2: 32\n"));
}

TEST(TimelineTest, AnEmptyLogIsOne) {
  RILL_EXPECT_OK(TimelineText(LogOf({}), true).status());
  EXPECT_THAT(TimelineText("x", true),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace rill::inspect
