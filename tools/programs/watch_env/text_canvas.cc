// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/text_canvas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rill::watch_env {
namespace {

// A cell is twice as high as wide, in the scene as on a terminal.
class Canvas {
 public:
  Canvas(const Scene& scene, int columns)
      : low_(scene.low),
        high_(scene.high),
        cell_((high_.x - low_.x) / columns),
        columns_(columns),
        lines_(std::max(1, static_cast<int>(
                               std::lround((high_.y - low_.y) / (2 * cell_)))),
               std::string(static_cast<size_t>(columns), ' ')) {}

  void Put(const Point& at, char c) {
    const double column = std::floor((at.x - low_.x) / cell_);
    const double line = std::floor((high_.y - at.y) / (2 * cell_));
    if (column < 0 || column >= columns_ || line < 0 ||
        line >= static_cast<double>(lines_.size())) {
      return;
    }
    lines_[static_cast<size_t>(line)][static_cast<size_t>(column)] = c;
  }

  // Two points a cell.
  void DrawLine(const Point& from, const Point& to) {
    const double dx = to.x - from.x, dy = to.y - from.y;
    const char c = Slope(dx, dy);
    const int points = 1 + static_cast<int>(2 * std::hypot(dx, dy) / cell_);
    for (int i = 0; i <= points; ++i) {
      const double t = static_cast<double>(i) / points;
      Put({from.x + t * dx, from.y + t * dy}, c);
    }
  }

  void DrawDisc(const Disc& disc) {
    Put(disc.centre, 'o');
    // A cell's width apart each way: no cell in the disc is missed.
    for (double x = -disc.radius; x <= disc.radius; x += cell_) {
      for (double y = -disc.radius; y <= disc.radius; y += cell_) {
        if (std::hypot(x, y) <= disc.radius) {
          Put({disc.centre.x + x, disc.centre.y + y}, 'o');
        }
      }
    }
  }

  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) {
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
    }
    return text;
  }

 private:
  // In the scene's units, not in cells: a line at 45 degrees is a slash.
  static char Slope(double dx, double dy) {
    if (std::abs(dy) < 0.4 * std::abs(dx)) return '-';
    if (std::abs(dx) < 0.4 * std::abs(dy)) return '|';
    return (dx > 0) == (dy > 0) ? '/' : '\\';
  }

  const Point low_, high_;
  const double cell_;  // Its width; it is twice as high.
  const int columns_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string DrawText(const Scene& scene, int columns) {
  Canvas canvas(scene, columns);
  for (const Stroke& stroke : scene.strokes) {
    for (size_t i = 1; i < stroke.points.size(); ++i) {
      canvas.DrawLine(stroke.points[i - 1], stroke.points[i]);
    }
  }
  for (const Disc& disc : scene.discs) canvas.DrawDisc(disc);
  return canvas.Text();
}

}  // namespace rill::watch_env
