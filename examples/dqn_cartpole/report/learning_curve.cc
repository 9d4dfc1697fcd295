// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/report/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace rill::dqn_cartpole {
namespace {

constexpr double kWidth = 800, kHeight = 450;
constexpr double kLeft = 64, kRight = 780, kTop = 44, kBottom = 396;
constexpr int64_t kShownPoints = 4000;

constexpr char kInk[] = "#333333";
constexpr char kGrid[] = "#e4e4e4";
constexpr char kEpisode[] = "#9bb8d8";
constexpr char kMean[] = "#1f5fa8";
constexpr char kEvaluation[] = "#d9730d";
constexpr char kThreshold[] = "#3a8a3a";

// A data range and the pixels it is drawn on.
struct Axis {
  double max = 1;   // Data run from 0 to here.
  double tick = 1;  // Between two ticks.
  double first_pixel = 0;
  double last_pixel = 1;

  double Pixel(double value) const {
    return first_pixel + (last_pixel - first_pixel) * value / max;
  }
};

// An axis to at least `max` whose ticks are 1, 2 or 5 times a power of ten.
Axis MakeAxis(double max, int most_ticks, double first_pixel,
              double last_pixel) {
  max = std::max(max, 1.0);
  const double rough = max / most_ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double tick = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) tick = factor * power;
  }
  return {std::ceil(max / tick - 1e-9) * tick, tick, first_pixel, last_pixel};
}

std::string TickText(double value) {
  if (value >= 1e6) return absl::StrFormat("%gM", value / 1e6);
  if (value >= 1e4) return absl::StrFormat("%gk", value / 1e3);
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

void AppendAxes(std::string* svg, const Axis& x, const Axis& y) {
  const std::string grid = absl::StrCat("stroke=\"", kGrid, "\"");
  const std::string ink = absl::StrCat("stroke=\"", kInk, "\"");
  for (double v = 0; v <= x.max + x.tick / 2; v += x.tick) {
    AppendLine(svg, x.Pixel(v), kTop, x.Pixel(v), kBottom, grid);
    AppendLine(svg, x.Pixel(v), kBottom, x.Pixel(v), kBottom + 5, ink);
    AppendText(svg, x.Pixel(v), kBottom + 18, "middle", "", TickText(v));
  }
  for (double v = 0; v <= y.max + y.tick / 2; v += y.tick) {
    AppendLine(svg, kLeft, y.Pixel(v), kRight, y.Pixel(v), grid);
    AppendLine(svg, kLeft - 5, y.Pixel(v), kLeft, y.Pixel(v), ink);
    AppendText(svg, kLeft - 8, y.Pixel(v) + 4, "end", "", TickText(v));
  }
  AppendLine(svg, kLeft, kBottom, kRight, kBottom, ink);
  AppendLine(svg, kLeft, kTop, kLeft, kBottom, ink);
  AppendText(svg, (kLeft + kRight) / 2, kBottom + 38, "middle", "",
             "environment steps");
  AppendText(svg, 18, (kTop + kBottom) / 2, "middle",
             absl::StrFormat("transform=\"rotate(-90 18 %.1f)\"",
                             (kTop + kBottom) / 2),
             "return of an episode");
}

// Calls `draw` for at most kShownPoints finite points, evenly chosen; the last
// one is always among them.
template <typename Draw>
void ForEachShown(const std::vector<CurvePoint>& points, Draw draw) {
  const int64_t size = static_cast<int64_t>(points.size());
  const int64_t stride = (size + kShownPoints - 1) / kShownPoints;
  for (int64_t i = size - 1; i >= 0; i -= stride) {
    if (std::isfinite(points[i].value)) draw(points[i]);
  }
}

void AppendData(std::string* svg, const LearningCurve& curve, const Axis& x,
                const Axis& y) {
  absl::StrAppendFormat(svg, "<g fill=\"%s\">\n", kEpisode);
  ForEachShown(curve.episodes, [&](const CurvePoint& p) {
    absl::StrAppendFormat(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.4\"/>\n",
                          x.Pixel(p.step), y.Pixel(p.value));
  });
  absl::StrAppend(svg, "</g>\n");
  AppendLine(svg, kLeft, y.Pixel(curve.threshold), kRight,
             y.Pixel(curve.threshold),
             absl::StrFormat("stroke=\"%s\" stroke-width=\"1.2\" "
                             "stroke-dasharray=\"6 4\"",
                             kThreshold));
  absl::StrAppendFormat(
      svg, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
      kMean);
  ForEachShown(RunningMean(curve.episodes, curve.window),
               [&](const CurvePoint& p) {
                 absl::StrAppendFormat(svg, "%.1f,%.1f ", x.Pixel(p.step),
                                       y.Pixel(p.value));
               });
  absl::StrAppend(svg, "\"/>\n");
  absl::StrAppendFormat(
      svg, "<g fill=\"white\" stroke=\"%s\" stroke-width=\"1.6\">\n",
      kEvaluation);
  ForEachShown(curve.evaluations, [&](const CurvePoint& p) {
    absl::StrAppendFormat(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/>\n",
                          x.Pixel(p.step), y.Pixel(p.value));
  });
  absl::StrAppend(svg, "</g>\n");
}

// Above the plot, where no data lie; each entry in its curve's colour.
void AppendLegend(std::string* svg, const LearningCurve& curve) {
  const struct {
    std::string text;
    absl::string_view colour;
    double width;
  } entries[] = {
      {"episode", "#6f97c4", 62},
      {absl::StrCat("mean of ", curve.window), kMean, 88},
      {"greedy evaluation", kEvaluation, 122},
      {absl::StrFormat("solved at %g", curve.threshold), kThreshold, 92},
  };
  double right = kRight;
  for (int i = 3; i >= 0; --i) {
    AppendText(
        svg, right, 28, "end",
        absl::StrFormat("fill=\"%s\" font-weight=\"bold\"", entries[i].colour),
        entries[i].text);
    right -= entries[i].width + 14;
  }
}

}  // namespace

std::vector<CurvePoint> RunningMean(const std::vector<CurvePoint>& points,
                                    int64_t window) {
  std::vector<CurvePoint> means;
  means.reserve(points.size());
  double sum = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(points.size()); ++i) {
    sum += points[i].value;
    if (i >= window) sum -= points[i - window].value;
    means.push_back({points[i].step, sum / std::min(i + 1, window)});
  }
  return means;
}

std::string RenderSvg(const LearningCurve& curve) {
  double last_step = 0, highest = curve.threshold;
  for (const auto* points : {&curve.episodes, &curve.evaluations}) {
    for (const CurvePoint& p : *points) {
      last_step = std::max(last_step, p.step);
      if (std::isfinite(p.value)) highest = std::max(highest, p.value);
    }
  }
  const Axis x = MakeAxis(last_step, 8, kLeft, kRight);
  const Axis y = MakeAxis(highest, 6, kBottom, kTop);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
      "viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"%s\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight, kWidth, kHeight, kInk);
  AppendText(&svg, kLeft, 28, "start", "font-size=\"15\" font-weight=\"bold\"",
             curve.title);
  AppendLegend(&svg, curve);
  AppendAxes(&svg, x, y);
  AppendData(&svg, curve, x, y);
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace rill::dqn_cartpole
