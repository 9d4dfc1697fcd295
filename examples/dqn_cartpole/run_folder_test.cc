// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/run_folder.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/examples/dqn_cartpole/checkpoint.h"
#include "rill/examples/dqn_cartpole/run_log.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

RunRow Row(double steps) {
  RunRow row;
  row[kSteps] = steps;
  row[kLoss] = 0.5;
  return row;
}

TEST(RunFolderTest, HoldsCsvCurveAndEvents) {
  const std::string path = FreshPath();
  RILL_ASSERT_OK_AND_ASSIGN(RunFolder folder, RunFolder::Create(path, kNow));
  RunLog log;
  log.AddRow(Row(64));
  RILL_ASSERT_OK(folder.WriteEvents(Row(64), kNow));
  RILL_ASSERT_OK(folder.WriteCsv(log));
  RILL_ASSERT_OK(folder.WriteCurve(log, Config()));
  EXPECT_THAT(
      ListDirectory(path),
      IsOkAndHolds(ElementsAre("curve.csv", "curve.svg",
                               StartsWith("events.out.tfevents.1700000000."))));
  EXPECT_THAT(ReadFile(JoinPath(path, "curve.csv")), IsOkAndHolds(log.Csv()));
  EXPECT_THAT(ReadFile(JoinPath(path, "curve.svg")),
              IsOkAndHolds(HasSubstr("CartPole-v1, double DQN, seed 0")));
}

TEST(RunFolderTest, CreateNeverTouchesAFolderThatHoldsSomething) {
  const std::string path = FreshPath();
  RILL_ASSERT_OK(CreateDirectories(path));
  RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "mine"), "precious"));
  EXPECT_THAT(RunFolder::Create(path, kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path), HasSubstr("holds 1 entries"),
                             HasSubstr("want a new or empty folder"))));
  EXPECT_THAT(RunFolder::Create(JoinPath(path, "mine"), kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       EndsWith("is a file, want a folder")));
  EXPECT_THAT(ListDirectory(path), IsOkAndHolds(ElementsAre("mine")));
}

TEST(RunFolderTest, FolderThatCannotBeMadeIsAStatus) {
  const std::string path = FreshPath();
  RILL_ASSERT_OK(WriteFileAtomically(path, "a file"));
  EXPECT_THAT(RunFolder::Create(JoinPath(path, "below/it"), kNow),
              StatusIs(::testing::Ne(absl::StatusCode::kOk), HasSubstr(path)));
}

TEST(RunFolderTest, ResumeGoesOnAtTheNotedPosition) {
  const std::string path = FreshPath();
  EventsPosition noted;
  {
    RILL_ASSERT_OK_AND_ASSIGN(RunFolder folder, RunFolder::Create(path, kNow));
    RILL_ASSERT_OK(folder.WriteEvents(Row(64), kNow));
    noted = folder.events_position();
    RILL_ASSERT_OK(folder.WriteEvents(Row(128), kNow));
  }
  EXPECT_GT(noted.size_bytes, 0);
  RILL_ASSERT_OK_AND_ASSIGN(RunFolder folder, RunFolder::Resume(path, noted));
  EXPECT_THAT(FileSize(JoinPath(path, noted.file)),
              IsOkAndHolds(noted.size_bytes));
  EXPECT_EQ(folder.checkpoint_path(), JoinPath(path, "checkpoint"));
}

TEST(RunFolderTest, ResumeSweepsUpAfterAKilledRun) {
  const std::string path = FreshPath();
  RILL_ASSERT_OK_AND_ASSIGN(RunFolder folder, RunFolder::Create(path, kNow));
  const EventsPosition events = folder.events_position();
  RILL_ASSERT_OK(CreateDirectories(JoinPath(path, "checkpoint.tmp-7-1/part")));
  for (const char* name : {"curve.csv.tmp-7-2", "my.tmp-notes", "curve.csv"}) {
    RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, name), "x"));
  }
  RILL_ASSERT_OK(RunFolder::Resume(path, events));
  EXPECT_THAT(
      ListDirectory(path),
      IsOkAndHolds(ElementsAre("curve.csv", events.file, "my.tmp-notes")));
}

TEST(RunFolderTest, ResumeWithoutTheEventFileIsNotFound) {
  const std::string path = FreshPath();
  RILL_ASSERT_OK(CreateDirectories(path));
  EXPECT_THAT(RunFolder::Resume(path, {"events.out.tfevents.1.h", 9}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("events.out.tfevents.1.h")));
}

}  // namespace
}  // namespace rill::dqn_cartpole
