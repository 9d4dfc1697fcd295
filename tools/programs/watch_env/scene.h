// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_SCENE_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_SCENE_H_

#include <string>
#include <vector>

namespace rill::watch_env {

// x to the right, y up, in the environment's unit of length.
struct Point {
  double x = 0;
  double y = 0;
};

// Points joined by straight lines.
struct Stroke {
  std::vector<Point> points = {};
  double width = 0;
  std::string color;  // "#4477aa"
};

struct Disc {
  Point centre;
  double radius = 0;
  std::string color;
};

// A picture: what lies between two corners, discs in front of strokes.
struct Scene {
  Point low;
  Point high;
  std::vector<Stroke> strokes = {};
  std::vector<Disc> discs = {};
};

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_SCENE_H_
