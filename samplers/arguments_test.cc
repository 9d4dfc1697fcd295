// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/arguments.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TEST(ArgumentsTest, BatchSizeNamesValueAndRange) {
  RILL_EXPECT_OK(CheckBatchSize("S", 1, 8));
  RILL_EXPECT_OK(CheckBatchSize("S", 8, 8));
  for (int64_t bad : {int64_t{0}, int64_t{-3}, int64_t{9},
                      std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(CheckBatchSize("S", bad, 8),
                StatusIs(kInvalidArgument,
                         AllOf(StartsWith("S::Plan: batch size: got "),
                               HasSubstr(std::to_string(bad)),
                               HasSubstr("want one in [1, 8]"))));
  }
}

TEST(ArgumentsTest, PrioritiesNeedOneValueADraw) {
  const std::vector<Draw> draws = {{.slot = 7}, {.slot = 9}};
  RILL_EXPECT_OK(CheckPriorities("S", draws, {0.0f, 1.5f}));
  EXPECT_THAT(CheckPriorities("S", draws, {0.0f}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("got 1"), HasSubstr("2 draws"))));
}

TEST(ArgumentsTest, PrioritiesMustBeFiniteAndNotNegative) {
  const std::vector<Draw> draws = {{.slot = 7}, {.slot = 9}};
  for (float bad : {-1.0f, std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(
        CheckPriorities("S", draws, {1.0f, bad}),
        StatusIs(kInvalidArgument,
                 AllOf(HasSubstr("priority 1 (slot 9)"), HasSubstr("finite"))));
  }
}

}  // namespace
}  // namespace rill::samplers_internal
