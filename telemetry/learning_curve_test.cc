// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/learning_curve.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(LearningCurveTest, Example) {
  const std::string svg = RenderSvg(PlotOf({.title = "CartPole-v1, seed 7",
                                            .episodes = {{20, 20}, {180, 160}},
                                            .threshold = 475}));
  EXPECT_THAT(svg, HasSubstr(">CartPole-v1, seed 7</text>"));
  EXPECT_THAT(svg, HasSubstr(">solved at 475</text>"));
}

TEST(LearningCurveTest, RunningMeanCoversTheWindow) {
  EXPECT_THAT(RunningMean({{1, 2}, {2, 4}, {5, 9}, {6, 2}}, 2),
              ElementsAre(CurvePoint{1, 2}, CurvePoint{2, 3},
                          CurvePoint{5, 6.5}, CurvePoint{6, 5.5}));
  EXPECT_THAT(RunningMean({}, 2), ElementsAre());
}

TEST(LearningCurveTest, MeanOfLastTakesWhatThereIs) {
  EXPECT_EQ(MeanOfLast({{1, 2}, {2, 4}, {5, 9}}, 2), 6.5);
  EXPECT_EQ(MeanOfLast({{1, 2}, {2, 4}}, 3), 3);
  EXPECT_TRUE(std::isnan(MeanOfLast({}, 3)));
}

TEST(LearningCurveTest, PlotHasEpisodesThresholdMeanAndEvaluations) {
  const SvgPlot plot = PlotOf({.episodes = {{1, 2}, {2, 4}},
                               .evaluations = {{2, 9}},
                               .window = 2,
                               .threshold = 8});
  ASSERT_THAT(plot.series, SizeIs(4));
  EXPECT_THAT(plot.series[0].points,
              ElementsAre(CurvePoint{1, 2}, CurvePoint{2, 4}));
  EXPECT_THAT(plot.series[1].points, ElementsAre(CurvePoint{0, 8}));
  EXPECT_EQ(plot.series[2].name, "mean of 2");
  EXPECT_THAT(plot.series[2].points,
              ElementsAre(CurvePoint{1, 2}, CurvePoint{2, 3}));
  EXPECT_THAT(plot.series[3].points, ElementsAre(CurvePoint{2, 9}));
}

TEST(LearningCurveTest, PlotWithoutAThresholdHasNoLevel) {
  for (const SvgSeries& series : PlotOf({.episodes = {{1, 2}}}).series) {
    EXPECT_NE(series.style, SvgSeries::Style::kLevel);
  }
}

}  // namespace
}  // namespace rill
