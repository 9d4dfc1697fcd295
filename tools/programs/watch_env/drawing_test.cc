// SPDX-License-Identifier: Apache-2.0
// Observations to scenes, and scenes to text and SVG.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/watch_env/draw_env.h"
#include "rill/tools/programs/watch_env/scene.h"
#include "rill/tools/programs/watch_env/svg.h"
#include "rill/tools/programs/watch_env/text_canvas.h"

namespace rill::watch_env {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr float kPi = 3.14159265f;

auto Near(double x, double y) {
  return AllOf(Field(&Point::x, DoubleNear(x, 1e-6)),
               Field(&Point::y, DoubleNear(y, 1e-6)));
}

// Where the moving part begins and ends.
Point Joint(const Scene& scene) { return scene.strokes.back().points.front(); }
Point Tip(const Scene& scene) { return scene.strokes.back().points.back(); }

TEST(DrawEnvTest, ThePolesAngleMovesItsTip) {
  const auto draw = [](float x, float angle) {
    return *DrawEnv("CartPole-v1", {x, 0, angle, 0});
  };
  EXPECT_THAT(Joint(draw(0, 0)), Near(0, 0.3));
  EXPECT_THAT(Tip(draw(0, 0)), Near(0, 1.3));
  // To the right, then to the left; the joint stays.
  EXPECT_THAT(Tip(draw(0, kPi / 6)), Near(0.5, 0.3 + std::sqrt(0.75)));
  EXPECT_THAT(Tip(draw(0, -kPi / 6)), Near(-0.5, 0.3 + std::sqrt(0.75)));
  EXPECT_THAT(Joint(draw(0, kPi / 6)), Near(0, 0.3));
  // All of it goes with the cart.
  EXPECT_THAT(Joint(draw(2, 0)), Near(2, 0.3));
  EXPECT_THAT(Tip(draw(2, 0)), Near(2, 1.3));
}

TEST(DrawEnvTest, ThePendulumTurnsCounterclockwiseFromUp) {
  const auto tip = [](float angle) {
    return Tip(*DrawEnv("Pendulum-v1", {std::cos(angle), std::sin(angle), 0}));
  };
  EXPECT_THAT(tip(0), Near(0, 1));
  EXPECT_THAT(tip(kPi / 2), Near(-1, 0));
  EXPECT_THAT(tip(kPi), Near(0, -1));
}

TEST(DrawEnvTest, TheSecondLinksAngleIsFromTheFirst) {
  const auto draw = [](float a, float b) {
    return *DrawEnv("Acrobot-v1",
                    {std::cos(a), std::sin(a), std::cos(b), std::sin(b), 0, 0});
  };
  EXPECT_THAT(draw(0, 0).strokes.back().points,
              ElementsAre(Near(0, 0), Near(0, -1), Near(0, -2)));
  EXPECT_THAT(draw(kPi / 2, 0).strokes.back().points,
              ElementsAre(Near(0, 0), Near(1, 0), Near(2, 0)));
  EXPECT_THAT(draw(kPi / 2, kPi / 2).strokes.back().points,
              ElementsAre(Near(0, 0), Near(1, 0), Near(1, 1)));
}

TEST(DrawEnvTest, TheCarIsOnTheHill) {
  for (const char* env : {"MountainCar-v0", "MountainCarContinuous-v0"}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Scene valley, DrawEnv(env, {-0.5236f, 0}));
    RILL_ASSERT_OK_AND_ASSIGN(const Scene up, DrawEnv(env, {0.5f, 0}));
    ASSERT_THAT(valley.discs, SizeIs(1));
    EXPECT_NEAR(valley.discs[0].centre.x, -0.5236, 1e-6);
    EXPECT_NEAR(valley.discs[0].centre.y, 0.1 + 0.05, 1e-4);
    EXPECT_NEAR(up.discs[0].centre.y, 0.45 * std::sin(1.5) + 0.6, 1e-6);
  }
}

TEST(DrawEnvTest, WhatItCannotDrawIsNamed) {
  EXPECT_FALSE(CanDraw("Hopper-v5"));
  EXPECT_THAT(DrawEnv("Hopper-v5", {}).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"Hopper-v5\""),
                             HasSubstr("CartPole-v1, MountainCar-v0"))));
  EXPECT_THAT(DrawEnv("Pendulum-v1", {1, 0}).status(),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("got [1, 0]"), HasSubstr("want 3"))));
  EXPECT_THAT(
      DrawEnv("Pendulum-v1", {1, 0, std::numeric_limits<float>::quiet_NaN()})
          .status(),
      StatusIs(kInvalidArgument, HasSubstr("nan")));
}

// A square of 8 with one line and one disc.
Scene Diagonal(const Point& from, const Point& to) {
  return {.low = {0, 0},
          .high = {8, 8},
          .strokes = {{.points = {from, to}, .width = 0.5, .color = "#123456"}},
          .discs = {{.centre = {7.5, 1}, .radius = 0.4, .color = "#abcdef"}}};
}

TEST(DrawTextTest, LinesHaveTheirSlopes) {
  EXPECT_EQ(DrawText(Diagonal({0.52, 0.5}, {7.32, 7.3}), 8),
            "      //\n    //\n  //\n//     o\n");
  EXPECT_EQ(DrawText(Diagonal({0.5, 7.5}, {6.5, 1.5}), 8),
            "\\\\\n  \\\\\n    \\\\\n      \\o\n");
  EXPECT_EQ(DrawText(Diagonal({0.5, 5}, {6.5, 5}), 8),
            "\n-------\n\n       o\n");
  EXPECT_EQ(DrawText(Diagonal({2.5, 0.5}, {2.5, 7.5}), 8),
            "  |\n  |\n  |\n  |    o\n");
}

TEST(DrawTextTest, WhatIsOutsideIsLeftOut) {
  EXPECT_EQ(DrawText(Diagonal({-9, 3}, {99, 3}), 8),
            "\n\n--------\n       o\n");
}

// Tags are closed in order, and attributes are quoted: of what is written here
// that is what can go wrong.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos;
       at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    EXPECT_THAT(tag, Not(HasSubstr("<")));
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_THAT(open, SizeIs(0));
}

TEST(SvgTest, AFrameIsWellFormedAndInPixels) {
  const std::string svg = SvgFrame(Diagonal({0, 0}, {8, 4}));
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, AllOf(HasSubstr("width=\"480\" height=\"480\" "
                                   "viewBox=\"0 0 480 480\""),
                         HasSubstr("points=\"0.00,480.00 480.00,240.00\""),
                         HasSubstr("stroke=\"#123456\" stroke-width=\"30.00\""),
                         HasSubstr("cx=\"450.00\" cy=\"420.00\" r=\"24.00\"")));
}

TEST(SvgTest, AnAnimationShowsEachSceneForItsTime) {
  const std::vector<Scene> scenes(4, Diagonal({0, 0}, {8, 4}));
  const std::string svg = SvgAnimation(scenes, absl::Milliseconds(50));
  ExpectWellFormed(svg);
  const std::vector<std::string> groups = absl::StrSplit(svg, "<g ");
  ASSERT_THAT(groups, SizeIs(5));
  EXPECT_THAT(groups[1], HasSubstr("keyTimes=\"0;0.000000;0.250000\""));
  EXPECT_THAT(groups[4], HasSubstr("keyTimes=\"0;0.750000;1.000000\""));
  for (size_t i = 1; i < groups.size(); ++i) {
    EXPECT_THAT(groups[i],
                AllOf(HasSubstr("dur=\"0.200s\""), HasSubstr("<polyline")));
  }
  ExpectWellFormed(SvgAnimation({}, absl::Milliseconds(50)));
}

}  // namespace
}  // namespace rill::watch_env
