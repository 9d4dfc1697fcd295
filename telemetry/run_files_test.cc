// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/run_files.h"

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const absl::Time now = absl::FromUnixSeconds(1);

std::string NewDirectory() {
  const std::string directory =
      JoinPath(::testing::TempDir(),
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  EXPECT_THAT(RemoveAll(directory), IsOk());
  return directory;
}

std::string Events(const std::string& directory) {
  const auto text =
      ReadFile(JoinPath(directory, "events.out.tfevents.1." + HostName()));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

TEST(RunFilesTest, Example) {
  const std::string run_dir = NewDirectory();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files,
      RunFiles::Create(
          run_dir, {{"steps", "progress/steps"}, {"loss", "train/loss"}}, now));
  RILL_ASSERT_OK(files->Write({4096, 0.25}, now));
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps,loss\n4096,0.25\n"));
  EXPECT_THAT(Events(run_dir), HasSubstr("train/loss"));
}

TEST(RunFilesTest, NanIsAnEmptyCellAndNoEvent) {
  const std::string run_dir = NewDirectory();
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

TEST(RunFilesTest, RefusesAFolderThatExistsAndRowsOfAnotherLength) {
  const std::string run_dir = NewDirectory();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto files, RunFiles::Create(run_dir, {{"steps", "steps"}}, now));
  EXPECT_THAT(RunFiles::Create(run_dir, {{"steps", "steps"}}, now),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("want a new folder")));
  EXPECT_THAT(files->Write({1, 2}, now),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadFile(JoinPath(run_dir, "curve.csv")),
              IsOkAndHolds("steps\n"));
}

TEST(RunFilesTest, CurveIsReplaced) {
  const std::string run_dir = NewDirectory();
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
