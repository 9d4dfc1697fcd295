// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/flight_log.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/flow/decision_log.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using Kind = Decision::Kind;

FlightHead ShortHead() {
  return {.begin = absl::FromUnixMicros(1000),
          .program = "/p",
          .arguments = {"-x"}};
}

std::vector<FlightEvent> SomeEvents() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  return {
      {.decision = {.kind = Kind::kPart, .part = 0}, .text = "weights"},
      {.decision = {.kind = Kind::kPublish,
                    .part = 0,
                    .numbers = {0},
                    .digest = 0x12345678},
       .at = absl::Microseconds(300)},
      {.decision = {.kind = Kind::kArrival,
                    .part = 1,
                    .numbers = {3, 1, 16, 0, 16, 0},
                    .digest = 1},
       .at = absl::Microseconds(300)},
      {.decision = {.kind = Kind::kChoice,
                    .part = 2,
                    .numbers = {kMost, kLeast, -1, 0, 1}},
       .at = absl::Hours(1000)},
      {.decision = {.kind = Kind::kEnd}, .at = absl::Hours(1001)},
  };
}

// The log of these events, and where each of them ends.
std::string LogOf(const FlightHead& head,
                  const std::vector<FlightEvent>& events,
                  std::vector<size_t>* ends = nullptr) {
  FlightEncoder encoder;
  std::string log, bytes;
  RILL_EXPECT_OK(encoder.Begin(head, &log));
  for (const FlightEvent& event : events) {
    RILL_EXPECT_OK(encoder.Add(event, &bytes));
    log += bytes;
    if (ends != nullptr) ends->push_back(log.size());
  }
  return log;
}

std::vector<FlightEvent> EventsOf(absl::string_view log,
                                  int64_t* torn = nullptr) {
  std::vector<FlightEvent> events;
  auto decoder = FlightDecoder::Create(log);
  RILL_EXPECT_OK(decoder);
  if (!decoder.ok()) return events;
  for (FlightEvent event; decoder->Next(&event);) events.push_back(event);
  if (torn != nullptr) *torn = decoder->torn_bytes();
  return events;
}

TEST(FlightLogTest, EventsReadAsTheyWereWritten) {
  const std::string log = LogOf(ShortHead(), SomeEvents());
  RILL_ASSERT_OK_AND_ASSIGN(const auto decoder, FlightDecoder::Create(log));
  EXPECT_EQ(decoder.head(), ShortHead());
  EXPECT_EQ(EventsOf(log), SomeEvents());
}

TEST(FlightLogTest, AnEventOfALoopTakesFewBytes) {
  std::vector<size_t> ends;
  LogOf(ShortHead(), SomeEvents(), &ends);
  EXPECT_LE(ends[2] - ends[1], 20);
}

// docs/formats/flight_log.md shows these bytes.
TEST(FlightLogTest, BytesAreTheDocumentedOnes) {
  const std::string log =
      LogOf(ShortHead(),
            {{.decision = {.kind = Kind::kPart, .part = 0}, .text = "weights"},
             {.decision = {.kind = Kind::kPublish,
                           .part = 0,
                           .numbers = {3},
                           .digest = 0x12345678},
              .at = absl::Microseconds(300)}});
  EXPECT_EQ(absl::BytesToHexString(log),
            "52494c4c464c4f47"
            "01"
            "09"
            "d00f"
            "022f70"
            "01"
            "022d78"
            "27fe9cc7"
            "0a"
            "01"
            "00"
            "00"
            "77656967687473"
            "14dc8146"
            "09"
            "8d"
            "00"
            "ac02"
            "78563412"
            "06"
            "66bedc3e");
}

TEST(FlightLogTest, ALogThatIsCutAnywhereIsALogUpToThere) {
  std::vector<size_t> ends;
  const std::vector<FlightEvent> all = SomeEvents();
  const std::string log = LogOf(ShortHead(), all, &ends);
  const size_t head = LogOf(ShortHead(), {}).size();
  for (size_t size = 0; size < log.size(); ++size) {
    const absl::string_view cut = absl::string_view(log).substr(0, size);
    if (size < head) {
      EXPECT_FALSE(FlightDecoder::Create(cut).ok()) << size;
      continue;
    }
    size_t whole = 0;
    while (whole < ends.size() && ends[whole] <= size) ++whole;
    EXPECT_EQ(EventsOf(cut),
              std::vector<FlightEvent>(all.begin(), all.begin() + whole));
  }
}

TEST(FlightLogTest, ZerosAndOtherBytesBehindTheLastEventAreNone) {
  const std::string log = LogOf(ShortHead(), SomeEvents());
  int64_t torn = -1;
  EXPECT_EQ(EventsOf(log + std::string(100, '\0'), &torn), SomeEvents());
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(EventsOf(log +
                         "\x05"
                         "abc" +
                         std::string(9, '\0'),
                     &torn),
            SomeEvents());
  EXPECT_EQ(torn, 4);
}

TEST(FlightLogTest, ALogIsReadOnWhenItHasGrown) {
  std::vector<size_t> ends;
  const std::vector<FlightEvent> all = SomeEvents();
  const std::string log = LogOf(ShortHead(), all, &ends);
  const std::string early = log.substr(0, ends[2] + 3) + std::string(50, '\0');
  RILL_ASSERT_OK_AND_ASSIGN(auto decoder, FlightDecoder::Create(early));
  std::vector<FlightEvent> read;
  FlightEvent event;
  while (decoder.Next(&event)) read.push_back(event);
  EXPECT_EQ(read.size(), 3);
  decoder.Extend(log);
  while (decoder.Next(&event)) read.push_back(event);
  EXPECT_EQ(read, all);
}

// The log ends before a record that is not the one that was written there.
TEST(FlightLogTest, AChangedByteEndsTheLog) {
  std::vector<size_t> ends;
  const std::vector<FlightEvent> all = SomeEvents();
  const std::string log = LogOf(ShortHead(), all, &ends);
  const Rng rng(1, RngStream::kUser);
  for (size_t at = LogOf(ShortHead(), {}).size(); at < log.size(); ++at) {
    std::string changed = log;
    changed[at] ^= static_cast<char>(1 + rng.UniformInt(at, 0, 255));
    size_t before = 0;
    while (ends[before] <= at) ++before;
    EXPECT_EQ(EventsOf(changed),
              std::vector<FlightEvent>(all.begin(), all.begin() + before));
  }
}

TEST(FlightLogTest, ARecordOfAnotherPlaceIsNone) {
  std::vector<size_t> ends;
  const std::string log = LogOf(ShortHead(), SomeEvents(), &ends);
  const std::string second = log.substr(ends[0], ends[1] - ends[0]);
  EXPECT_EQ(EventsOf(log.substr(0, ends[1]) + second).size(), 2);
}

TEST(FlightLogTest, OtherFilesAreRefused) {
  EXPECT_THAT(FlightDecoder::Create("id,steps\n"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want a flight log")));
  std::string newer = LogOf(ShortHead(), {});
  newer[8] = 2;
  EXPECT_THAT(FlightDecoder::Create(newer),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("form: got 2, want 1")));
  std::string changed = LogOf(ShortHead(), {});
  changed.back() ^= 1;
  EXPECT_THAT(FlightDecoder::Create(changed),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(FlightLogTest, ARecordThatIsTooLongIsRefused) {
  FlightEncoder encoder;
  std::string bytes;
  RILL_EXPECT_OK(encoder.Begin(ShortHead(), &bytes));
  const FlightEvent long_event = {
      .decision = {.kind = Kind::kPart},
      .text = std::string(FlightEncoder::kMaxRecord + 1, 'x')};
  EXPECT_THAT(encoder.Add(long_event, &bytes),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FlightLogTest, EventsAreSaidForPeople) {
  EXPECT_EQ(FlightEventText(SomeEvents()[1]),
            "publish of part 0: 0 (digest 0x12345678)");
  EXPECT_EQ(FlightEventText(SomeEvents()[0]), "part of part 0: weights");
}

}  // namespace
}  // namespace rill
