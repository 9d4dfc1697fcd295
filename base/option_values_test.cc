// SPDX-License-Identifier: Apache-2.0
#include "rill/base/option_values.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

std::string TextOf(double value) {
  OptionValues values;
  values.Double("value", value);
  return values.values()[0].text;
}

TEST(OptionValuesTest, Example) {
  OptionValues values;
  values.Double("alpha", 0.7).Bool("stratified", true);
  EXPECT_THAT(values.values(),
              ElementsAre(FieldsAre("alpha", "0.7", false),
                          FieldsAre("stratified", "true", false)));
}

TEST(OptionValuesTest, TextsOfAllKinds) {
  const std::vector<std::string> keys = {"a", "b\"\n"};
  OptionValues values;
  values.Int("int", -3).Unsigned("unsigned", ~uint64_t{0}).Text("text", "x,y");
  values.Texts("texts", keys).Texts("empty", {}).Choice("choice", "kSame");
  values.None("absent").Function("with", true).Function("without", false);
  EXPECT_THAT(values.values(),
              ElementsAre(FieldsAre("int", "-3", false),
                          FieldsAre("unsigned", "18446744073709551615", false),
                          FieldsAre("text", "\"x,y\"", false),
                          FieldsAre("texts", "[\"a\", \"b\\\"\\n\"]", false),
                          FieldsAre("empty", "[]", false),
                          FieldsAre("choice", "kSame", false),
                          FieldsAre("absent", "none", false),
                          FieldsAre("with", "function", false),
                          FieldsAre("without", "none", false)));
}

TEST(OptionValuesTest, PartsHavePrefixesAllTheWayDown) {
  OptionValues inner;
  inner.Double("alpha", 1);
  OptionValues middle;
  middle.Int("times", 2).Part("inner", "Prioritized", inner);
  OptionValues outer;
  outer.Part("selector", "Consuming", middle);
  EXPECT_THAT(outer.values(),
              ElementsAre(FieldsAre("selector", "Consuming", true),
                          FieldsAre("selector.times", "2", false),
                          FieldsAre("selector.inner", "Prioritized", true),
                          FieldsAre("selector.inner.alpha", "1", false)));
}

TEST(OptionValuesTest, DoublesReadBackExactly) {
  const Rng rng(/*seed=*/1);
  for (uint32_t i = 0; i < 10000; ++i) {
    const double value =
        (rng.UniformDouble(0, 2 * i) - 0.5) *
        std::exp2(static_cast<double>(rng.UniformInt(0, 2 * i + 1, 2000)) -
                  1000.0);
    EXPECT_EQ(std::strtod(TextOf(value).c_str(), nullptr), value);
  }
  using Limits = std::numeric_limits<double>;
  for (const double value : {Limits::max(), Limits::lowest(), Limits::min(),
                             Limits::denorm_min(), 0.1 + 0.2}) {
    EXPECT_EQ(std::strtod(TextOf(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(TextOf(0.1), "0.1");
  EXPECT_EQ(TextOf(0.1f), "0.10000000149011612");
  EXPECT_EQ(TextOf(Limits::infinity()), "inf");
}

TEST(OptionValuesTest, NeighboursDiffer) {
  EXPECT_NE(TextOf(0.1), TextOf(std::nextafter(0.1, 1)));
}

}  // namespace
}  // namespace rill
