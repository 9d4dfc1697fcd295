// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/program/saved_log.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/telemetry/learning_curve.h"
#include "rill/telemetry/run_files.h"
#include "rill/telemetry/svg_plot.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::examples {
namespace {

using ::testing::ElementsAre;

TEST(SavedLogTest, AResumedRunWritesNoRowTwiceAndKeepsItsCurve) {
  const std::string folder = ::testing::TempDir() + "/saved_log";
  RILL_ASSERT_OK(RemoveAll(folder));
  const std::vector<RunFiles::Column> columns = {{"steps", "steps"},
                                                 {"return", "return"}};
  TensorDict state;
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto files, RunFiles::Create(folder, columns, absl::UnixEpoch()));
    RILL_ASSERT_OK(files->Write({10, 1.5}, absl::UnixEpoch()));
    RILL_ASSERT_OK_AND_ASSIGN(
        state, SaveLog(*files, {.episodes = {{7, 1e-300}, {9, 1.0 / 3}},
                                .evaluations = {{10, 1.5}}}));
    // The checkpoint knows nothing of it.
    RILL_ASSERT_OK(files->Write({20, 2.5}, absl::UnixEpoch()));
  }
  LearningCurve curve = {.evaluations = {{99, 99}}};
  RILL_ASSERT_OK_AND_ASSIGN(const auto files,
                            LoadLog(state, folder, columns, &curve));
  RILL_ASSERT_OK(files->Write({20, 3.5}, absl::UnixEpoch()));
  EXPECT_THAT(curve.episodes,
              ElementsAre(CurvePoint{7, 1e-300}, CurvePoint{9, 1.0 / 3}));
  EXPECT_THAT(curve.evaluations, ElementsAre(CurvePoint{10, 1.5}));
  std::stringstream text;
  text << std::ifstream(folder + "/curve.csv").rdbuf();
  EXPECT_EQ(text.str(), "steps,return\n10,1.5\n20,3.5\n");
}

TEST(SavedLogTest, AStateOfSomethingElseIsAnError) {
  LearningCurve curve;
  EXPECT_THAT(
      LoadLog(TensorDict(), ::testing::TempDir(), {{"a", "a"}}, &curve),
      StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("position")));
}

}  // namespace
}  // namespace rill::examples
