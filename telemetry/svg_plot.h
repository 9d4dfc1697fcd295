// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_SVG_PLOT_H_
#define RILL_TELEMETRY_SVG_PLOT_H_

#include <string>
#include <vector>

namespace rill {

// A value at a number of environment steps.
struct CurvePoint {
  double step = 0;
  double value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// One curve of a picture.
struct SvgSeries {
  enum class Style {
    kDots,   // Small and faint, for many points.
    kLine,   // Joined in order.
    kRings,  // For few points that matter.
    kLevel,  // A dashed line across the plot at each value; steps are not read.
  };
  std::string name = {};  // In the legend; empty: not there.
  std::string colour = "#1f5fa8";
  Style style = Style::kLine;
  std::vector<CurvePoint> points = {};
};

// A picture of curves over a common axis of steps.
struct SvgPlot {
  std::string title = {};
  std::string x_label = "environment steps";
  std::string y_label = "return of an episode";
  std::vector<SvgSeries> series = {};  // Later ones lie above earlier ones.
};

// The plot as a stand-alone SVG 1.1 picture, 800 x 450, on a light ground. Axes
// hold 0 and all points and have round ticks; a legend is beside the title.
// A series is thinned to about 4,000 points that keep its last one, so that a
// picture of one series stays below 400 kB. Points that are not finite are left
// out. Texts are escaped. Immutable inputs, no state. O(points).
//
// Example (SvgPlotTest.Example runs it):
//   std::string svg = RenderSvg(
//       {.title = "CartPole-v1",
//        .series = {{.name = "seed 1", .points = {{0, 20}, {4096, 180}}}}});
std::string RenderSvg(const SvgPlot& plot);

}  // namespace rill

#endif  // RILL_TELEMETRY_SVG_PLOT_H_
