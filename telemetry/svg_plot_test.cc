// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/svg_plot.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Style = SvgSeries::Style;

int64_t Count(absl::string_view text, absl::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// Every tag that opens is closed, in order: enough of XML for this writer.
void ExpectBalanced(absl::string_view svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != absl::string_view::npos;
       at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, absl::string_view::npos);
    const absl::string_view tag = svg.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" />", 1)));
    if (tag.back() == '/') continue;
    if (tag.front() != '/') {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(absl::StrCat("/", open.back()), name);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(SvgPlotTest, Example) {
  const std::string svg = RenderSvg(
      {.title = "CartPole-v1",
       .series = {{.name = "seed 1", .points = {{0, 20}, {4096, 180}}}}});
  ExpectBalanced(svg);
  EXPECT_THAT(svg, HasSubstr(">seed 1</text>"));
}

TEST(SvgPlotTest, PictureShowsEveryPointAxesAndNames) {
  SvgPlot plot;
  plot.title = "seed 1 < 2 & \"so on\"";
  plot.series = {
      {.name = "dots",
       .style = Style::kDots,
       .points = {{0, 0}, {40000, 250}, {80000, 500}}},
      {.style = Style::kRings, .points = {{80000, 490}}},
      {.name = "level", .style = Style::kLevel, .points = {{0, 475}}},
      {.style = Style::kLine, .points = {{0, 0}, {80000, 500}}}};
  const std::string svg = RenderSvg(plot);
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, EndsWith("</svg>\n"));
  ExpectBalanced(svg);
  EXPECT_EQ(Count(svg, "<circle"), 4);
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 1);
  EXPECT_THAT(svg, HasSubstr("seed 1 &lt; 2 &amp; &quot;so on&quot;"));
  EXPECT_THAT(svg, HasSubstr(">environment steps</text>"));
  EXPECT_THAT(svg, HasSubstr(">return of an episode</text>"));
  EXPECT_THAT(svg, HasSubstr(">80k</text>"));
  EXPECT_THAT(svg, HasSubstr(">500</text>"));
  EXPECT_THAT(svg, HasSubstr(">dots</text>"));
  EXPECT_THAT(svg, HasSubstr(">level</text>"));
  // Both axes end at the data's ends: the last point is the top right corner.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"780.0\" cy=\"44.0\" r=\"1.4\"/>"));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"64.0\" cy=\"396.0\" r=\"1.4\"/>"));
  EXPECT_THAT(svg, HasSubstr("points=\"780.0,44.0 64.0,396.0 \""));
}

TEST(SvgPlotTest, AxisReachesBelowZeroWhereValuesDo) {
  const std::string svg =
      RenderSvg({.series = {{.style = Style::kDots,
                             .points = {{0, -600}, {1'000'000, 3'000}}}}});
  EXPECT_THAT(svg, HasSubstr(">-1000</text>"));
  EXPECT_THAT(svg, HasSubstr(">3000</text>"));
  EXPECT_THAT(svg, HasSubstr(">1M</text>"));
  // -600 of [-1000, 3000] is a tenth of the height above the lower edge.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"64.0\" cy=\"360.8\" r=\"1.4\"/>"));
}

TEST(SvgPlotTest, EmptyPlotIsAPictureToo) {
  const std::string svg = RenderSvg({.title = "nothing yet"});
  ExpectBalanced(svg);
  EXPECT_EQ(Count(svg, "<circle"), 0);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlotTest, PointsThatAreNotFiniteAreLeftOut) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::string svg = RenderSvg(
      {.series = {{.style = Style::kRings,
                   .points = {{1, kNan}, {2, kInf}, {kInf, 1}, {3, 5}}}}});
  EXPECT_EQ(Count(svg, "<circle"), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SvgPlotTest, LongSeriesAreThinnedAndKeepTheLastPoint) {
  SvgSeries series = {.style = Style::kDots};
  for (int i = 0; i <= 100'000; ++i) series.points.push_back({1.0 * i, 0});
  const std::string svg = RenderSvg({.series = {series}});
  EXPECT_LE(Count(svg, "<circle"), 4000);
  EXPECT_LT(svg.size(), 400'000u);
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"780.0\" cy=\"396.0\" r=\"1.4\"/>"));
}

}  // namespace
}  // namespace rill
