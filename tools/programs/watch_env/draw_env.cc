// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/watch_env/draw_env.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"

namespace rill::watch_env {
namespace {

constexpr char kGround[] = "#888888";
constexpr char kBody[] = "#333333";
constexpr char kMoving[] = "#bb5522";
constexpr char kGoal[] = "#228833";

Stroke Line(Point from, Point to, double width, const char* color) {
  return {.points = {from, to}, .width = width, .color = color};
}

// x, x', angle, angle'; a positive angle leans to the right.
Scene DrawCartPole(absl::Span<const float> seen) {
  const double x = seen[0], angle = seen[2];
  // The top of the cart. The pole is 1 long, twice the physics' half length.
  const double top = 0.3;
  Scene scene = {.low = {-3, -0.3}, .high = {3, 1.5}};
  scene.strokes = {Line({-2.4, 0}, {2.4, 0}, 0.03, kGround),
                   {.points = {{x - 0.25, 0},
                               {x + 0.25, 0},
                               {x + 0.25, top},
                               {x - 0.25, top},
                               {x - 0.25, 0}},
                    .width = 0.05,
                    .color = kBody},
                   Line({x, top}, {x + std::sin(angle), top + std::cos(angle)},
                        0.08, kMoving)};
  return scene;
}

// Gymnasium's curve. The force of gravity in the task goes with cos(3 x), its
// slope.
double Hill(double x) { return 0.45 * std::sin(3 * x) + 0.55; }

// x, x'.
Scene DrawMountainCar(double x, double goal) {
  constexpr double kLeft = -1.2, kRight = 0.6;
  constexpr int kPieces = 60;
  Scene scene = {.low = {kLeft - 0.1, -0.1}, .high = {kRight + 0.1, 1.4}};
  Stroke hill = {.width = 0.02, .color = kGround};
  for (int i = 0; i <= kPieces; ++i) {
    const double at = kLeft + (kRight - kLeft) * i / kPieces;
    hill.points.push_back({at, Hill(at)});
  }
  scene.strokes = {
      hill, Line({goal, Hill(goal)}, {goal, Hill(goal) + 0.25}, 0.02, kGoal),
      Line({goal, Hill(goal) + 0.25}, {goal - 0.1, Hill(goal) + 0.2}, 0.02,
           kGoal)};
  scene.discs = {
      {.centre = {x, Hill(x) + 0.05}, .radius = 0.05, .color = kMoving}};
  return scene;
}
Scene DrawMountainCar(absl::Span<const float> seen) {
  return DrawMountainCar(seen[0], 0.5);
}
Scene DrawMountainCarContinuous(absl::Span<const float> seen) {
  return DrawMountainCar(seen[0], 0.45);
}

// Cosine and sine of the first link's angle from hanging, and of the second's
// from the first. Links are 1 long.
Scene DrawAcrobot(absl::Span<const float> seen) {
  const double cos1 = seen[0], sin1 = seen[1], cos2 = seen[2], sin2 = seen[3];
  // Sums of angles by the addition formulas: an observation has no angles.
  const Point joint = {sin1, -cos1};
  const Point tip = {joint.x + sin1 * cos2 + cos1 * sin2,
                     joint.y - (cos1 * cos2 - sin1 * sin2)};
  Scene scene = {.low = {-2.2, -2.2}, .high = {2.2, 2.2}};
  scene.strokes = {
      Line({-2.2, 1}, {2.2, 1}, 0.03, kGoal),
      {.points = {{0, 0}, joint, tip}, .width = 0.12, .color = kMoving}};
  scene.discs = {{.centre = {0, 0}, .radius = 0.1, .color = kBody},
                 {.centre = joint, .radius = 0.08, .color = kBody}};
  return scene;
}

// Cosine and sine of the angle, angle'; 0 is up, positive to the left.
Scene DrawPendulum(absl::Span<const float> seen) {
  Scene scene = {.low = {-1.2, -1.2}, .high = {1.2, 1.2}};
  scene.strokes = {Line({0, 0}, {-seen[1], seen[0]}, 0.12, kMoving)};
  scene.discs = {{.centre = {0, 0}, .radius = 0.06, .color = kBody}};
  return scene;
}

struct Drawing {
  absl::string_view env;
  size_t elements;  // Of an observation.
  Scene (*draw)(absl::Span<const float> seen);
};
constexpr Drawing kDrawings[] = {
    {"CartPole-v1", 4, DrawCartPole},
    {"MountainCar-v0", 2, DrawMountainCar},
    {"MountainCarContinuous-v0", 2, DrawMountainCarContinuous},
    {"Acrobot-v1", 6, DrawAcrobot},
    {"Pendulum-v1", 3, DrawPendulum},
};

const Drawing* Find(absl::string_view env) {
  for (const Drawing& drawing : kDrawings) {
    if (drawing.env == env) return &drawing;
  }
  return nullptr;
}

}  // namespace

bool CanDraw(absl::string_view env) { return Find(env) != nullptr; }

absl::StatusOr<Scene> DrawEnv(absl::string_view env,
                              absl::Span<const float> observation) {
  const Drawing* const drawing = Find(env);
  if (drawing == nullptr) {
    return NotFound(
        "DrawEnv: got \"", env, "\", want one of ",
        absl::StrJoin(kDrawings, ", ", [](std::string* out, const Drawing& d) {
          absl::StrAppend(out, d.env);
        }));
  }
  if (observation.size() != drawing->elements ||
      !std::all_of(observation.begin(), observation.end(),
                   [](float v) { return std::isfinite(v); })) {
    return InvalidArgument("DrawEnv: observation of ", env, ": got [",
                           absl::StrJoin(observation, ", "), "], want ",
                           drawing->elements, " finite elements");
  }
  return drawing->draw(observation);
}

}  // namespace rill::watch_env
