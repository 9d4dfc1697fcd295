// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace rill {
namespace {

constexpr double kWidth = 800, kHeight = 450;
constexpr double kLeft = 64, kRight = 780, kTop = 44, kBottom = 396;
constexpr int64_t kShownPoints = 4000;

constexpr char kInk[] = "#333333";
constexpr char kGrid[] = "#e4e4e4";

// A data range and the pixels it is drawn on.
struct Axis {
  double min = 0;
  double max = 1;
  double tick = 1;  // Between two ticks.
  double first_pixel = 0;
  double last_pixel = 1;

  double Pixel(double value) const {
    return first_pixel +
           (last_pixel - first_pixel) * (value - min) / (max - min);
  }
};

// An axis from at most `min` to at least `max` whose ticks are 1, 2 or 5 times
// a power of ten.
Axis MakeAxis(double min, double max, int most_ticks, double first_pixel,
              double last_pixel) {
  max = std::max(max, min + 1);
  const double rough = (max - min) / most_ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  // As power <= rough < 10 power, one of 1, 2, 5 and 10 powers is the smallest
  // that is large enough.
  double tick = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) tick = factor * power;
  }
  // 1e-9 of a tick keeps a bound that rounding left just off a tick on it.
  return {std::floor(min / tick + 1e-9) * tick,
          std::ceil(max / tick - 1e-9) * tick, tick, first_pixel, last_pixel};
}

// Calls `draw` for each tick of the axis.
template <typename Draw>
void ForEachTick(const Axis& axis, Draw draw) {
  // Counted in whole ticks: adding up tick by tick would drift, and show
  // "0.30000000000000004".
  const int64_t first = std::llround(axis.min / axis.tick);
  const int64_t last = std::llround(axis.max / axis.tick);
  for (int64_t i = first; i <= last; ++i) {
    draw(static_cast<double>(i) * axis.tick);
  }
}

std::string TickText(double value) {
  if (std::abs(value) >= 1e6) return absl::StrFormat("%gM", value / 1e6);
  if (std::abs(value) >= 1e4) return absl::StrFormat("%gk", value / 1e3);
  return absl::StrFormat("%g", value);
}

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

void AppendText(std::string* svg, double x, double y, absl::string_view anchor,
                absl::string_view extra, absl::string_view text) {
  absl::StrAppendFormat(
      svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x,
      y, anchor, extra, Escape(text));
}

void AppendLine(std::string* svg, double x1, double y1, double x2, double y2,
                absl::string_view style) {
  absl::StrAppendFormat(
      svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1,
      y1, x2, y2, style);
}

void AppendAxes(std::string* svg, const SvgPlot& plot, const Axis& x,
                const Axis& y) {
  const std::string grid = absl::StrCat("stroke=\"", kGrid, "\"");
  const std::string ink = absl::StrCat("stroke=\"", kInk, "\"");
  ForEachTick(x, [&](double v) {
    AppendLine(svg, x.Pixel(v), kTop, x.Pixel(v), kBottom, grid);
    AppendLine(svg, x.Pixel(v), kBottom, x.Pixel(v), kBottom + 5, ink);
    AppendText(svg, x.Pixel(v), kBottom + 18, "middle", "", TickText(v));
  });
  ForEachTick(y, [&](double v) {
    AppendLine(svg, kLeft, y.Pixel(v), kRight, y.Pixel(v), grid);
    AppendLine(svg, kLeft - 5, y.Pixel(v), kLeft, y.Pixel(v), ink);
    AppendText(svg, kLeft - 8, y.Pixel(v) + 4, "end", "", TickText(v));
  });
  AppendLine(svg, kLeft, kBottom, kRight, kBottom, ink);
  AppendLine(svg, kLeft, kTop, kLeft, kBottom, ink);
  AppendText(svg, (kLeft + kRight) / 2, kBottom + 38, "middle", "",
             plot.x_label);
  AppendText(svg, 18, (kTop + kBottom) / 2, "middle",
             absl::StrFormat("transform=\"rotate(-90 18 %.1f)\"",
                             (kTop + kBottom) / 2),
             plot.y_label);
}

bool IsFinite(const CurvePoint& point) {
  return std::isfinite(point.step) && std::isfinite(point.value);
}

// Calls `draw` for at most kShownPoints finite points, evenly chosen; the last
// one is always among them.
template <typename Draw>
void ForEachShown(const std::vector<CurvePoint>& points, Draw draw) {
  const int64_t size = static_cast<int64_t>(points.size());
  const int64_t stride = (size + kShownPoints - 1) / kShownPoints;
  // From the back, so that the last point is one of them whatever the stride.
  for (int64_t i = size - 1; i >= 0; i -= stride) {
    if (IsFinite(points[i])) draw(points[i]);
  }
}

void AppendCircles(std::string* svg, const SvgSeries& series,
                   absl::string_view style, double radius, const Axis& x,
                   const Axis& y) {
  absl::StrAppendFormat(svg, "<g %s>\n", style);
  ForEachShown(series.points, [&](const CurvePoint& p) {
    absl::StrAppendFormat(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n",
                          x.Pixel(p.step), y.Pixel(p.value), radius);
  });
  absl::StrAppend(svg, "</g>\n");
}

void AppendSeries(std::string* svg, const SvgSeries& series, const Axis& x,
                  const Axis& y) {
  const std::string colour = Escape(series.colour);
  switch (series.style) {
    case SvgSeries::Style::kDots:
      AppendCircles(svg, series,
                    absl::StrFormat("fill=\"%s\" fill-opacity=\"0.7\"", colour),
                    1.4, x, y);
      return;
    case SvgSeries::Style::kRings:
      AppendCircles(
          svg, series,
          absl::StrFormat("fill=\"white\" stroke=\"%s\" stroke-width=\"1.6\"",
                          colour),
          3.2, x, y);
      return;
    case SvgSeries::Style::kLine:
      absl::StrAppendFormat(svg,
                            "<polyline fill=\"none\" stroke=\"%s\" "
                            "stroke-width=\"2\" points=\"",
                            colour);
      ForEachShown(series.points, [&](const CurvePoint& p) {
        absl::StrAppendFormat(svg, "%.1f,%.1f ", x.Pixel(p.step),
                              y.Pixel(p.value));
      });
      absl::StrAppend(svg, "\"/>\n");
      return;
    case SvgSeries::Style::kLevel:
      ForEachShown(series.points, [&](const CurvePoint& p) {
        AppendLine(svg, kLeft, y.Pixel(p.value), kRight, y.Pixel(p.value),
                   absl::StrFormat("stroke=\"%s\" stroke-width=\"1.2\" "
                                   "stroke-dasharray=\"6 4\"",
                                   colour));
      });
      return;
  }
}

// Above the plot, where no data lie; each name in its curve's colour.
void AppendLegend(std::string* svg, const std::vector<SvgSeries>& series) {
  // Bold sans-serif letters of this size are 7 wide at most, on average.
  constexpr double kLetterWidth = 7, kGap = 26;
  // From right to left, the last name outermost: no text is measured, so each
  // name's width is an estimate.
  double right = kRight;
  for (auto it = series.rbegin(); it != series.rend(); ++it) {
    if (it->name.empty()) continue;
    AppendText(
        svg, right, 28, "end",
        absl::StrFormat("fill=\"%s\" font-weight=\"bold\"", Escape(it->colour)),
        it->name);
    right -= kLetterWidth * static_cast<double>(it->name.size()) + kGap;
  }
}

}  // namespace

std::string RenderSvg(const SvgPlot& plot) {
  double last_step = 0, lowest = 0, highest = 0;
  for (const SvgSeries& series : plot.series) {
    for (const CurvePoint& p : series.points) {
      if (!IsFinite(p)) continue;
      last_step = std::max(last_step, p.step);
      lowest = std::min(lowest, p.value);
      highest = std::max(highest, p.value);
    }
  }
  const Axis x = MakeAxis(0, last_step, 8, kLeft, kRight);
  // The pixels run from bottom to top: in SVG y grows downwards.
  const Axis y = MakeAxis(lowest, highest, 6, kBottom, kTop);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
      "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"%s\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight, kWidth, kHeight, kInk);
  AppendText(&svg, kLeft, 28, "start", "font-size=\"15\" font-weight=\"bold\"",
             plot.title);
  AppendLegend(&svg, plot.series);
  AppendAxes(&svg, plot, x, y);
  for (const SvgSeries& series : plot.series) AppendSeries(&svg, series, x, y);
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace rill
