// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/run_log.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

RunRow Row(double steps, double loss) {
  RunRow row;
  row[kSteps] = steps;
  row[kLoss] = loss;
  return row;
}

TEST(RunLogTest, CsvHasAHeaderAndEmptyCells) {
  RunLog log;
  log.AddRow(Row(4096, 0.25));
  log.AddRow(Row(500'000, 1.0 / 3));
  EXPECT_EQ(log.Csv(),
            "steps,episodes,updates,epsilon,mean_return,loss,mean_value,"
            "gradient_norm,probe_return,evaluation_return,seconds,"
            "steps_per_second\n"
            "4096,,,,,0.25,,,,,,\n"
            "500000,,,,,0.3333333333,,,,,,\n");
}

TEST(RunLogTest, MeanReturnCoversTheLastHundredEpisodes) {
  RunLog log;
  EXPECT_TRUE(std::isnan(log.MeanReturn()));
  for (int i = 0; i < 150; ++i) log.AddEpisode(i, i);
  EXPECT_DOUBLE_EQ(log.MeanReturn(), (50 + 149) / 2.0);
}

TEST(RunLogTest, CurveShowsProbesAndEvaluations) {
  RunLog log;
  log.AddEpisode(3, 20);
  RunRow row = Row(10, 0);
  row[kProbeReturn] = 480;
  row[kEvaluationReturn] = 470;
  log.AddRow(row);
  log.AddRow(Row(20, 0));
  const LearningCurve curve = log.Curve("title", 475);
  EXPECT_EQ(curve.title, "title");
  EXPECT_EQ(curve.threshold, 475);
  EXPECT_THAT(curve.episodes, ElementsAre(CurvePoint{3, 20}));
  EXPECT_THAT(curve.evaluations,
              ElementsAre(CurvePoint{10, 480}, CurvePoint{10, 470}));
}

TEST(RunLogTest, DictKeepsEveryBit) {
  RunLog log;
  log.AddRow(Row(1, 1.0 / 3));
  log.AddRow(Row(2, 0.1));
  log.AddEpisode(7, 1e-300);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, log.ToDict());
  RILL_ASSERT_OK_AND_ASSIGN(RunLog copy, RunLog::FromDict(dict));
  EXPECT_EQ(copy.Csv(), log.Csv());
  EXPECT_EQ(copy.rows()[0][kLoss], 1.0 / 3);
  EXPECT_EQ(copy.episodes(), log.episodes());
}

TEST(RunLogTest, EmptyLogRoundTrips) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, RunLog().ToDict());
  RILL_ASSERT_OK_AND_ASSIGN(RunLog copy, RunLog::FromDict(dict));
  EXPECT_THAT(copy.rows(), SizeIs(0));
  EXPECT_THAT(copy.episodes(), SizeIs(0));
}

TEST(RunLogTest, OtherShapesAreDataLoss) {
  TensorDict dict;
  RILL_ASSERT_OK_AND_ASSIGN(Tensor rows,
                            Tensor::Zeros(DType::kFloat64, {3, 5}));
  RILL_ASSERT_OK(dict.Set("rows", rows));
  EXPECT_THAT(
      RunLog::FromDict(dict),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("want float64[n, 12]")));
}

}  // namespace
}  // namespace rill::dqn_cartpole
