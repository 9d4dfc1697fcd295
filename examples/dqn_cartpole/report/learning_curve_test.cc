// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/dqn_cartpole/report/learning_curve.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill::dqn_cartpole {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

TEST(LearningCurveTest, RunningMeanCoversTheWindow) {
  EXPECT_THAT(RunningMean({{1, 2}, {2, 4}, {5, 9}, {6, 2}}, 2),
              ElementsAre(CurvePoint{1, 2}, CurvePoint{2, 3},
                          CurvePoint{5, 6.5}, CurvePoint{6, 5.5}));
  EXPECT_THAT(RunningMean({}, 2), ElementsAre());
}

TEST(LearningCurveTest, PictureShowsEveryPointAxesAndThreshold) {
  LearningCurve curve;
  curve.title = "seed 1 < 2 & \"so on\"";
  curve.episodes = {{0, 0}, {40000, 250}, {80000, 500}};
  curve.evaluations = {{80000, 490}};
  const std::string svg = RenderSvg(curve);
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, EndsWith("</svg>\n"));
  ExpectBalanced(svg);
  EXPECT_EQ(Count(svg, "<circle"), 4);
  EXPECT_THAT(svg, HasSubstr("seed 1 &lt; 2 &amp; &quot;so on&quot;"));
  EXPECT_THAT(svg, HasSubstr(">environment steps</text>"));
  EXPECT_THAT(svg, HasSubstr(">return of an episode</text>"));
  EXPECT_THAT(svg, HasSubstr(">80k</text>"));
  EXPECT_THAT(svg, HasSubstr(">500</text>"));
  EXPECT_THAT(svg, HasSubstr(">solved at 475</text>"));
  // Both axes end at the data's ends: the last episode is the top right corner.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"780.0\" cy=\"44.0\" r=\"1.4\"/>"));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"64.0\" cy=\"396.0\" r=\"1.4\"/>"));
}

TEST(LearningCurveTest, EmptyRunIsAPictureToo) {
  const std::string svg = RenderSvg({.title = "nothing yet"});
  ExpectBalanced(svg);
  EXPECT_EQ(Count(svg, "<circle"), 0);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LearningCurveTest, ValuesThatAreNotFiniteAreLeftOut) {
  LearningCurve curve;
  curve.evaluations = {{1, std::numeric_limits<double>::quiet_NaN()},
                       {2, std::numeric_limits<double>::infinity()},
                       {3, 5}};
  const std::string svg = RenderSvg(curve);
  EXPECT_EQ(Count(svg, "<circle"), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LearningCurveTest, LongRunsAreThinnedAndKeepTheLastPoint) {
  LearningCurve curve;
  for (int i = 0; i <= 100'000; ++i) curve.episodes.push_back({1.0 * i, 0});
  const std::string svg = RenderSvg(curve);
  EXPECT_LE(Count(svg, "<circle"), 4000);
  EXPECT_LT(svg.size(), 400'000u);
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"780.0\" cy=\"396.0\" r=\"1.4\"/>"));
}

}  // namespace
}  // namespace rill::dqn_cartpole
