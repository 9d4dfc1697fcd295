// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/run_files.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const absl::Time now = absl::FromUnixSeconds(1);

std::string Events(const std::string& directory) {
  const auto text =
      ReadFile(JoinPath(directory, "events.out.tfevents.1." + HostName()));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

TEST(RunFilesTest, Example) {
  const std::string run_dir = FreshPath();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files,
      RunFiles::Create(
          run_dir, {{"steps", "progress/steps"}, {"loss", "train/loss"}}, now));
  RILL_ASSERT_OK(files->Write({4096, 0.25}, now));
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps,loss\n4096,0.25\n"));
  EXPECT_THAT(Events(run_dir), HasSubstr("train/loss"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position, files->SavePosition());
  RILL_ASSERT_OK_AND_ASSIGN(
      files, RunFiles::Open(
                 run_dir, {{"steps", "progress/steps"}, {"loss", "train/loss"}},
                 position));
  RILL_ASSERT_OK(files->Write({8192, 0.125}, now));
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps,loss\n4096,0.25\n8192,0.125\n"));
}

TEST(RunFilesTest, AResumedRunLosesNoRowAndWritesNoneTwice) {
  const std::vector<RunFiles::Column> columns = {{"steps", "steps"},
                                                 {"a", "train/a"}};
  const auto write = [](RunFiles& files, int first, int end) {
    for (int i = first; i < end; ++i) {
      RILL_ASSERT_OK(files.Write({double(i), i * 0.5}, now));
    }
  };
  // What one run writes that is never resumed.
  const std::string whole = FreshPath();
  {
    RILL_ASSERT_OK_AND_ASSIGN(auto files,
                              RunFiles::Create(whole, columns, now));
    write(*files, 0, 20);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const std::string csv,
                            ReadFile(JoinPath(whole, "curve.csv")));
  const std::string events = Events(whole);
  for (int saved = 0; saved < 20; ++saved) {
    const std::string run_dir = FreshPath();
    RILL_ASSERT_OK_AND_ASSIGN(auto files,
                              RunFiles::Create(run_dir, columns, now));
    write(*files, 0, saved);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string position,
                              files->SavePosition());
    write(*files, saved, saved + 3);  // And then it is killed.
    RILL_ASSERT_OK_AND_ASSIGN(files,
                              RunFiles::Open(run_dir, columns, position));
    write(*files, saved, 20);
    EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")), IsOkAndHolds(csv));
    EXPECT_EQ(Events(run_dir), events);
  }
}

TEST(RunFilesTest, WhatCannotBeContinuedIsLeftAsItIs) {
  const std::string run_dir = FreshPath();
  const std::string csv = JoinPath(run_dir, "curve.csv");
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files, RunFiles::Create(run_dir, {{"steps", "steps"}}, now));
  RILL_ASSERT_OK(files->Write({1}, now));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string position, files->SavePosition());
  RILL_ASSERT_OK(files->Write({2}, now));
  EXPECT_THAT(RunFiles::Open(run_dir, {{"frames", "steps"}}, position),
              IsFailedPrecondition("got frames, want those of"));
  for (const char* none :
       {"", "RunFiles1 8", "RunFiles2 8 8 events.out.tfevents.1",
        "RunFiles1 -8 8 events.out.tfevents.1", "RunFiles1 8 8 curve.csv",
        "RunFiles1 8 8 events.out.tfevents.1/../x"}) {
    EXPECT_THAT(RunFiles::Open(run_dir, {{"steps", "steps"}}, none),
                IsDataLoss("want one of SavePosition"));
  }
  // The events were lost, or are those of another run.
  const std::string other =
      position.substr(0, position.rfind(' ')) + " events.out.tfevents.2.x";
  EXPECT_THAT(RunFiles::Open(run_dir, {{"steps", "steps"}}, other),
              IsDataLoss("got no file"));
  EXPECT_THAT(ReadFile(csv), IsOkAndHolds("steps\n1\n2\n"));
  RILL_ASSERT_OK(WriteFileAtomically(csv, "steps\n"));
  EXPECT_THAT(RunFiles::Open(run_dir, {{"steps", "steps"}}, position),
              IsDataLoss("got 6 bytes"));
}

TEST(RunFilesTest, NanIsAnEmptyCellAndNoEvent) {
  const std::string run_dir = FreshPath();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files,
      RunFiles::Create(
          run_dir,
          {{"steps", "progress/steps"}, {"a", "train/a"}, {"b", "train/b"}},
          now));
  RILL_ASSERT_OK(files->Write({1, kNan, 2}, now));
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps,a,b\n1,,2\n"));
  EXPECT_THAT(Events(run_dir),
              AllOf(HasSubstr("train/b"), Not(HasSubstr("train/a")),
                    Not(HasSubstr("progress/steps"))));
}

TEST(RunFilesTest, RefusesAFolderThatHoldsSomethingAndRowsOfAnotherLength) {
  const std::string run_dir = FreshPath();
  RILL_ASSERT_OK(CreateDirectories(run_dir));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files, RunFiles::Create(run_dir, {{"steps", "steps"}}, now));
  EXPECT_THAT(RunFiles::Create(run_dir, {{"steps", "steps"}}, now),
              IsFailedPrecondition("want a new folder"));
  EXPECT_THAT(RunFiles::Create(JoinPath(run_dir, "curve.csv"),
                               {{"steps", "steps"}}, now),
              IsFailedPrecondition());
  EXPECT_THAT(files->Write({1, 2}, now), IsInvalidArgument());
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps\n"));
}

TEST(RunFilesTest, CurveIsReplaced) {
  const std::string run_dir = FreshPath();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files, RunFiles::Create(run_dir, {{"steps", "steps"}}, now));
  RILL_ASSERT_OK(files->WriteCurve({.title = "first"}));
  RILL_ASSERT_OK(files->WriteCurve({.title = "second"}));
  EXPECT_THAT(
      ReadFile(JoinPath(run_dir, "curve.svg")),
      IsOkAndHolds(AllOf(HasSubstr("second"), Not(HasSubstr("first")))));
}

}  // namespace
}  // namespace rill
