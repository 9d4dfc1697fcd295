// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/svg.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rill::watch_env {
namespace {

constexpr double kWidth = 480;  // Pixels.

// Pixels a unit of length, the same both ways.
double Scale(const Scene& scene) {
  return kWidth / (scene.high.x - scene.low.x);
}

// SVG's y goes down.
Point ToPixels(const Scene& scene, const Point& point) {
  return {(point.x - scene.low.x) * Scale(scene),
          (scene.high.y - point.y) * Scale(scene)};
}

std::string Begin(const Scene& scene) {
  const double height = (scene.high.y - scene.low.y) * Scale(scene);
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
      "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      kWidth, height, kWidth, height);
}

std::string Shapes(const Scene& scene) {
  std::string svg;
  for (const Stroke& stroke : scene.strokes) {
    absl::StrAppend(&svg, "<polyline points=\"");
    for (size_t i = 0; i < stroke.points.size(); ++i) {
      const Point at = ToPixels(scene, stroke.points[i]);
      absl::StrAppendFormat(&svg, "%s%.2f,%.2f", i == 0 ? "" : " ", at.x, at.y);
    }
    absl::StrAppendFormat(&svg,
                          "\" fill=\"none\" stroke=\"%s\" "
                          "stroke-width=\"%.2f\" stroke-linecap=\"round\"/>\n",
                          stroke.color, stroke.width * Scale(scene));
  }
  for (const Disc& disc : scene.discs) {
    const Point at = ToPixels(scene, disc.centre);
    absl::StrAppendFormat(
        &svg, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"%s\"/>\n",
        at.x, at.y, disc.radius * Scale(scene), disc.color);
  }
  return svg;
}

}  // namespace

std::string SvgFrame(const Scene& scene) {
  return absl::StrCat(Begin(scene), Shapes(scene), "</svg>\n");
}

std::string SvgAnimation(absl::Span<const Scene> scenes,
                         absl::Duration per_scene) {
  if (scenes.empty()) return SvgFrame({.low = {0, 0}, .high = {1, 1}});
  std::string svg = Begin(scenes[0]);
  const auto count = static_cast<double>(scenes.size());
  const double seconds = absl::ToDoubleSeconds(per_scene) * count;
  for (size_t i = 0; i < scenes.size(); ++i) {
    const auto at = static_cast<double>(i);
    absl::StrAppendFormat(
        &svg,
        // Each scene is a group that is visible in its share of one loop: an
        // animation of SMIL, without a script.
        "<g visibility=\"hidden\"><animate attributeName=\"visibility\" "
        "values=\"hidden;visible;hidden\" keyTimes=\"0;%.6f;%.6f\" "
        "calcMode=\"discrete\" dur=\"%.3fs\" repeatCount=\"indefinite\"/>\n",
        at / count, (at + 1) / count, seconds);
    absl::StrAppend(&svg, Shapes(scenes[i]), "</g>\n");
  }
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace rill::watch_env
