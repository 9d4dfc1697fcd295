// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_LEARNING_CURVE_H_
#define RILL_TELEMETRY_LEARNING_CURVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rill/telemetry/svg_plot.h"

namespace rill {

// The data of a run's picture.
struct LearningCurve {
  std::string title = {};
  std::vector<CurvePoint> episodes = {};     // Returns, ordered by step.
  std::vector<CurvePoint> evaluations = {};  // Mean returns.
  int64_t window = 100;                  // Episodes of the running mean, > 0.
  std::optional<double> threshold = {};  // Where the run counts as solved.
};

// The mean of the last min(i + 1, window) values, for every point i. O(n).
std::vector<CurvePoint> RunningMean(const std::vector<CurvePoint>& points,
                                    int64_t window);

// The mean of the last `window` values, of all where there are fewer; NaN where
// there is none. O(window).
double MeanOfLast(const std::vector<CurvePoint>& points, int64_t window);

// The curve as a plot for RenderSvg: every episode a faint dot, their running
// mean a line, evaluations rings, the threshold dashed. O(n).
//
// Example (LearningCurveTest.Example runs it):
//   std::string svg = RenderSvg(PlotOf({.title = "CartPole-v1, seed 7",
//                                       .episodes = {{20, 20}, {180, 160}},
//                                       .threshold = 475}));
SvgPlot PlotOf(const LearningCurve& curve);

}  // namespace rill

#endif  // RILL_TELEMETRY_LEARNING_CURVE_H_
