// SPDX-License-Identifier: Apache-2.0
#include "rill/recorder/flight_recorder.h"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/flow/decision_log.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;
using Kind = Decision::Kind;

std::string NewPath(absl::string_view name) {
  return ::testing::TempDir() + "/" + std::string(name);
}

TensorDict Weights(float value) {
  TensorDict weights;
  RILL_EXPECT_OK(weights.Set("w", *Tensor::From({value, 2 * value}, {2})));
  return weights;
}

TEST(FlightRecorderTest, Example) {
  const std::string path = NewPath("example");
  const TensorDict first = Weights(1), second = Weights(2);
  const auto run = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(auto recorder,
                          FlightRecorder::Record({.path = path}));
    RILL_ASSIGN_OR_RETURN(
        auto weights,
        WeightStore::Create({.weights = first, .recorder = recorder.get()}));
    RILL_RETURN_IF_ERROR(weights->Publish(second).status());
    RILL_ASSIGN_OR_RETURN(int64_t goes_on, recorder->Choose("goes on", 0));
    RILL_RETURN_IF_ERROR(recorder->End());
    EXPECT_EQ(goes_on, 0);
    return absl::OkStatus();
  };
  RILL_EXPECT_OK(run());
  RILL_ASSERT_OK_AND_ASSIGN(auto again, FlightRecorder::Repeat(path));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto weights,
      WeightStore::Create({.weights = first, .recorder = again.get()}));
  RILL_EXPECT_OK(weights->Publish(second));
  // The run's choice, and not the one of now.
  EXPECT_THAT(again->Choose("goes on", 1), IsOkAndHolds(0));
  RILL_EXPECT_OK(again->End());
  EXPECT_TRUE(again->has_end());
  RILL_EXPECT_OK(again->status());
  EXPECT_EQ(again->events(), 6);
}

// Two events of a part; the second has these values.
absl::Status TwoEvents(FlightRecorder* recorder, const std::string& part,
                       int64_t number, float value) {
  RILL_ASSIGN_OR_RETURN(const int64_t i, recorder->AddPart(part));
  RILL_RETURN_IF_ERROR(recorder->Note(Kind::kDraw, i, {32}));
  return recorder->Note(Kind::kPriorities, i, {number}, Weights(value), {});
}

std::string RecordTwo(absl::string_view name) {
  const std::string path = NewPath(name);
  const auto recorder = FlightRecorder::Record({.path = path});
  RILL_EXPECT_OK(recorder);
  RILL_EXPECT_OK(TwoEvents(recorder->get(), "buffer", 32, 1));
  return path;
}

TEST(FlightRecorderTest, ARunThatIsNotTheSameIsNamed) {
  const std::string path = RecordTwo("differs");
  struct Case {
    std::string part;
    int64_t number;
    float value;
    std::string got;
  };
  for (const Case& other :
       {Case{"another buffer", 32, 1,
             "event 0: got part of part 0: another buffer, "
             "want part of part 0: buffer"},
        Case{"buffer", 31, 1, "event 2: got priorities of part 0: 31"},
        Case{"buffer", 32, 1.5, "event 2: got "}}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
    EXPECT_THAT(
        TwoEvents(recorder.get(), other.part, other.number, other.value),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr(other.got)));
    // It stays so.
    EXPECT_THAT(recorder->End(), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(recorder->status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(other.got)));
  }
}

TEST(FlightRecorderTest, ARepeatEndsWhereTheLogDoes) {
  const std::string path = RecordTwo("ends");
  RILL_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
  RILL_EXPECT_OK(WriteFileAtomically(path, bytes + "\x09torn"));
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(TwoEvents(recorder.get(), "buffer", 32, 1));
  for (const absl::Status& status :
       {recorder->Note(Kind::kDraw, 0, {32}), recorder->Next(0).status(),
        recorder->Choose("c", 0).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                                 HasSubstr("3 events were repeated, and all "
                                           "were equal; 5 bytes behind")));
  }
  EXPECT_FALSE(recorder->has_end());
  // The log may be a damaged one.
  EXPECT_THAT(recorder->status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("got 5 bytes")));
}

TEST(FlightRecorderTest, ALogThatGrowsIsRepeatedAsItWasRead) {
  const std::string path = NewPath("grows");
  RILL_ASSERT_OK_AND_ASSIGN(auto recorded,
                            FlightRecorder::Record({.path = path}));
  RILL_EXPECT_OK(TwoEvents(recorded.get(), "buffer", 32, 1));
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(recorded->Note(Kind::kDraw, 0, {32}));
  // The file gets shorter: nobody may read its end any more.
  recorded.reset();
  RILL_EXPECT_OK(TwoEvents(recorder.get(), "buffer", 32, 1));
  RILL_EXPECT_OK(recorder->status());
  EXPECT_THAT(recorder->Note(Kind::kDraw, 0, {32}),
              StatusIs(absl::StatusCode::kAborted));
}

TEST(FlightRecorderTest, ADifferenceStaysWhateverTheProgramDoesWithIt) {
  const std::string path = RecordTwo("ignored");
  using Call = std::function<absl::Status(FlightRecorder*)>;
  const std::vector<std::pair<std::string, Call>> calls = {
      {"got a call of part 1",
       [](FlightRecorder* log) { return log->Next(1).status(); }},
      {"got another thing",
       [](FlightRecorder* log) { return log->Differs("another thing"); }},
      {"got part of part 1: choice: c",
       [](FlightRecorder* log) { return log->Choose("c", 0).status(); }}};
  for (const auto& [got, call] : calls) {
    RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
    RILL_EXPECT_OK(recorder->AddPart("buffer"));
    call(recorder.get()).IgnoreError();
    // The next event of the log comes too late.
    EXPECT_THAT(recorder->Note(Kind::kDraw, 0, {32}),
                StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_FALSE(recorder->IsNext(Kind::kDraw, 0));
    EXPECT_THAT(recorder->status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(got)));
  }
}

TEST(FlightRecorderTest, ARepeatThatEndsBeforeTheLogSaysSo) {
  const std::string path = RecordTwo("early");
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(recorder->AddPart("buffer"));
  EXPECT_THAT(recorder->status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("after 1 of 3 events, want all; the next is "
                                 "draw of part 0: 32")));
}

TEST(FlightRecorderTest, WhatComesBehindTheRunsEndIsADifference) {
  const std::string path = NewPath("behind");
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto recorder,
                              FlightRecorder::Record({.path = path}));
    RILL_EXPECT_OK(recorder->End());
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(recorder->End());
  RILL_EXPECT_OK(recorder->status());
  recorder->Next(0).IgnoreError();
  EXPECT_THAT(recorder->status(), StatusIs(absl::StatusCode::kDataLoss,
                                           HasSubstr("event 1: got a call")));
}

// As replay_run starts a program: this one never looks at a status.
void RepeatForEver(const std::string& path, const std::string& part) {
  char name[] = "program";
  char* arguments[] = {name, nullptr};
  setenv("RILL_REPLAY", path.c_str(), 1);
  auto recorder = FlightRecorder::OfProgram("", 1, arguments);
  RILL_EXPECT_OK(recorder);
  TwoEvents(recorder->get(), part, 32, 1).IgnoreError();
  while (true) (*recorder)->Next(0).IgnoreError();
}

TEST(FlightRecorderDeathTest, AProgramThatNeverLeavesIsEnded) {
  const std::string path = RecordTwo("never");
  EXPECT_EXIT(RepeatForEver(path, "buffer"), ::testing::ExitedWithCode(0),
              "3 events were repeated and equal; the process ends here");
  EXPECT_EXIT(RepeatForEver(path, "other"), ::testing::ExitedWithCode(1),
              "DATA_LOSS: .*this is not the same run");
}

TEST(FlightRecorderTest, NextSaysWhatComesForAPart) {
  const std::string path = RecordTwo("next");
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(recorder->AddPart("buffer"));
  RILL_ASSERT_OK_AND_ASSIGN(const Decision next, recorder->Next(0));
  EXPECT_EQ(next.kind, Kind::kDraw);
  EXPECT_EQ(recorder->events(), 1);
  EXPECT_TRUE(recorder->IsNext(Kind::kDraw, 0));
  EXPECT_FALSE(recorder->IsNext(Kind::kDraw, 1));
  EXPECT_FALSE(recorder->IsNext(Kind::kPatch, 0));
  EXPECT_THAT(recorder->Next(1), StatusIs(absl::StatusCode::kDataLoss));
}

// Notes an arrival whose steps have these versions.
absl::Status Arrive(FlightRecorder* recorder,
                    std::vector<Arrival::Versions> versions) {
  int64_t steps = 0;
  for (const auto& run : versions) steps += run.steps;
  return recorder->Note(
      Kind::kArrival, 0,
      Arrival{.steps = steps, .versions = std::move(versions)}.ToNumbers());
}

TEST(FlightRecorderTest, ARepeatKeepsTheWeightsThatABatchToComeWasMadeWith) {
  const std::string path = NewPath("weights");
  const auto publish = [](FlightRecorder* recorder, int64_t version) {
    RILL_EXPECT_OK(recorder->Note(Kind::kPublish, 0, {version},
                                  Weights(static_cast<float>(version)), {}));
  };
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto recorder,
                              FlightRecorder::Record({.path = path}));
    for (int64_t version = 0; version < 4; ++version) {
      publish(recorder.get(), version);
    }
    RILL_EXPECT_OK(Arrive(recorder.get(), {{2, 1}, {3, 2}}));
    RILL_EXPECT_OK(Arrive(recorder.get(), {{1, 2}}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  for (int64_t version = 0; version < 4; ++version) {
    publish(recorder.get(), version);
  }
  const auto kept = [&](int64_t version) {
    const auto weights = recorder->Published(0, version);
    return weights.ok() ? (*weights)->Find("w")->data<float>()[1] : -1;
  };
  EXPECT_EQ(kept(0), -1);
  EXPECT_EQ(kept(1), 2);
  EXPECT_EQ(kept(2), 4);
  EXPECT_EQ(kept(3), -1);
  RILL_EXPECT_OK(Arrive(recorder.get(), {{2, 1}, {3, 2}}));
  EXPECT_EQ(kept(1), -1);
  EXPECT_EQ(kept(2), 4);
  RILL_EXPECT_OK(Arrive(recorder.get(), {{1, 2}}));
  EXPECT_EQ(kept(2), -1);
}

TEST(FlightRecorderTest, AFullDiskEndsTheLogAndNotTheRun) {
  const std::string path = NewPath("full");
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto recorder,
                              FlightRecorder::Record({.path = path}));
    RILL_EXPECT_OK(TwoEvents(recorder.get(), "buffer", 32, 1));
    const ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      return point == "file.reserve" ? absl::ResourceExhaustedError("full")
                                     : absl::OkStatus();
    });
    const std::string long_text(30'000, 'x');  // Two are in a step of it.
    for (int i = 0; i < 3; ++i) RILL_EXPECT_OK(recorder->AddPart(long_text));
    EXPECT_THAT(recorder->status(),
                StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(recorder->events(), 5);
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder, FlightRecorder::Repeat(path));
  RILL_EXPECT_OK(TwoEvents(recorder.get(), "buffer", 32, 1));
}

TEST(FlightRecorderTest, AProgramRepeatsTheLogThatItsEnvironmentNames) {
  char name[] = "program";
  char* arguments[] = {name, nullptr};
  RILL_ASSERT_OK_AND_ASSIGN(auto none,
                            FlightRecorder::OfProgram("", 1, arguments));
  EXPECT_EQ(none, nullptr);
  const std::string path = NewPath("program");
  RILL_ASSERT_OK_AND_ASSIGN(auto recorder,
                            FlightRecorder::OfProgram(path, 1, arguments));
  EXPECT_FALSE(recorder->repeats());
  setenv("RILL_REPLAY", path.c_str(), 1);
  auto again = FlightRecorder::OfProgram("", 1, arguments);
  unsetenv("RILL_REPLAY");
  RILL_EXPECT_OK(again);
  EXPECT_TRUE((*again)->repeats());
}

}  // namespace
}  // namespace rill
