// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/wrong_parts.h"

#include <cstdlib>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EvenTest : public ::testing::TestWithParam<int> {};

TEST_P(EvenTest, IsEven) {
  if (GetParam() < 0) std::abort();
  EXPECT_EQ(GetParam() % 2, 0) << "odd";
}
TEST_P(EvenTest, IsSmall) { EXPECT_LT(GetParam(), 100) << "large"; }

INSTANTIATE_TEST_SUITE_P(Right, EvenTest, ::testing::Values(2, 4));

std::vector<WrongPart<EvenTest>> WrongNumbers() {
  return {
      {.name = "Odd", .test = "IsEven", .says = "odd", .part = 3},
      {.name = "Large", .test = "IsSmall", .says = "large", .part = 101},
      {.name = "Right", .test = "IsEven", .says = "odd", .part = 6},
      {.name = "Aborts", .test = "IsEven", .says = "odd", .part = -1},
  };
}
INSTANTIATE_TEST_SUITE_P(
    Wrong, EvenTest,
    ::testing::ValuesIn(testing_internal::PartsToRun<EvenTest>(WrongNumbers())),
    [](const auto& info) { return WrongNumbers()[info.index].name; });

TEST(WrongPartsTest, EachIsRefusedByItsTestAndItsText) {
  EXPECT_EQ(
      testing_internal::Unrefused("EvenTest", {{"Odd", "IsEven", "odd"},
                                               {"Large", "IsSmall", "large"}}),
      "");
}

TEST(WrongPartsTest, WhatIsNotRefusedIsNamed) {
  EXPECT_THAT(
      testing_internal::Unrefused("EvenTest", {{"Right", "IsEven", "odd"},
                                               {"Odd", "IsEven", "even"},
                                               {"Odd", "IsPrime", "odd"}}),
      AllOf(HasSubstr("Right: IsEven lets it pass"),
            HasSubstr("Odd: IsEven does not say <even> but:"),
            HasSubstr("Odd: EvenTest has no test IsPrime")));
  EXPECT_THAT(
      testing_internal::Unrefused("EvenTest", {{"Aborts", "IsEven", "odd"}}),
      HasSubstr("Aborts: the program ended in IsEven"));
}

TEST(WrongPartsTest, PartsAreOfTheInnerProgramOnly) {
  EXPECT_EQ(testing_internal::PartsToRun<EvenTest>(WrongNumbers()).empty(),
            !testing_internal::RunsWrongParts());
}

}  // namespace
}  // namespace rill
