// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/learning_curve.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rill {

std::vector<CurvePoint> RunningMean(const std::vector<CurvePoint>& points,
                                    int64_t window) {
  std::vector<CurvePoint> means;
  means.reserve(points.size());
  double sum = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(points.size()); ++i) {
    // A running sum, O(n) for any window. Its rounding errors add up, which a
    // picture does not show.
    sum += points[i].value;
    if (i >= window) sum -= points[i - window].value;
    means.push_back({points[i].step, sum / std::min(i + 1, window)});
  }
  return means;
}

double MeanOfLast(const std::vector<CurvePoint>& points, int64_t window) {
  if (points.empty()) return std::numeric_limits<double>::quiet_NaN();
  const int64_t count = std::min(window, static_cast<int64_t>(points.size()));
  double sum = 0;
  for (auto it = points.end() - count; it != points.end(); ++it) {
    sum += it->value;
  }
  return sum / static_cast<double>(count);
}

SvgPlot PlotOf(const LearningCurve& curve) {
  using Style = SvgSeries::Style;
  SvgPlot plot = {.title = curve.title};
  plot.series.push_back({.name = "episode",
                         .colour = "#6f97c4",
                         .style = Style::kDots,
                         .points = curve.episodes});
  if (curve.threshold.has_value()) {
    plot.series.push_back(
        {.name = absl::StrFormat("solved at %g", *curve.threshold),
         .colour = "#3a8a3a",
         .style = Style::kLevel,
         .points = {{0, *curve.threshold}}});
  }
  plot.series.push_back({.name = absl::StrCat("mean of ", curve.window),
                         .colour = "#1f5fa8",
                         .style = Style::kLine,
                         .points = RunningMean(curve.episodes, curve.window)});
  plot.series.push_back({.name = "evaluation",
                         .colour = "#d9730d",
                         .style = Style::kRings,
                         .points = curve.evaluations});
  return plot;
}

}  // namespace rill
