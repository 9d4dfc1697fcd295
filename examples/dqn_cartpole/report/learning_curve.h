// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DQN_CARTPOLE_REPORT_LEARNING_CURVE_H_
#define RILL_EXAMPLES_DQN_CARTPOLE_REPORT_LEARNING_CURVE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rill::dqn_cartpole {

// A value at a number of environment steps.
struct CurvePoint {
  double step = 0;
  double value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// What the picture of a run shows.
struct LearningCurve {
  std::string title = {};
  std::vector<CurvePoint> episodes = {};     // Returns, ordered by step.
  std::vector<CurvePoint> evaluations = {};  // Greedy mean returns.
  int64_t window = 100;    // Episodes of the running mean, > 0.
  double threshold = 475;  // Where the run counts as solved.
};

// The mean of the last min(i + 1, window) values, for every point i. O(n).
std::vector<CurvePoint> RunningMean(const std::vector<CurvePoint>& points,
                                    int64_t window);

// The curve as a stand-alone SVG 1.1 picture, 800 x 450, on a light ground:
// every episode a faint dot, their running mean a line, evaluations rings, the
// threshold dashed; axes with round ticks and a legend. Shown points are
// thinned to about 4,000, so a file stays below 400 kB. Values that are not
// finite are left out. Immutable inputs, no state. O(n).
std::string RenderSvg(const LearningCurve& curve);

}  // namespace rill::dqn_cartpole

#endif  // RILL_EXAMPLES_DQN_CARTPOLE_REPORT_LEARNING_CURVE_H_
