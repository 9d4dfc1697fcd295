// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/decision_log.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(ArrivalTest, NumbersReadAsTheArrivalTheyAreOf) {
  const Arrival arrival = {.worker = 3,
                           .sequence = 7,
                           .steps = 16,
                           .run_before = 4096,
                           .versions = {{10, 41}, {6, 44}}};
  const std::vector<int64_t> numbers = arrival.ToNumbers();
  EXPECT_THAT(numbers, ElementsAre(3, 7, 16, 4096, 10, 41, 6, 44));
  RILL_ASSERT_OK_AND_ASSIGN(const Arrival read, Arrival::FromNumbers(numbers));
  EXPECT_EQ(read.ToNumbers(), numbers);
}

TEST(ArrivalTest, NumbersThatAreNoArrivalsAreRefused) {
  const std::vector<std::vector<int64_t>> all = {
      {},
      {0, 1, 0},
      {0, 1, 2, 0, 2},            // A version is missing.
      {0, 1, 2, 0, 1, 5},         // One step is of no version.
      {0, 1, 2, 0, 3, 5},         // More than there are.
      {0, 1, 2, 0, -1, 5, 3, 5},  // A negative count.
      {0, 1, 2, 0, 0, 5, 2, 5},   // An empty run.
      {-1, 1, 0, 0},
      {0, 1, -2, 0},
      {kMost, 1, 0, 0},
      {0, 1, kMost, 0, kMost, 5},
      {0, 1, 0, kMost},
      {0, 1, 0, kLeast},
  };
  for (const auto& numbers : all) {
    EXPECT_THAT(Arrival::FromNumbers(numbers), IsDataLoss());
  }
}

TEST(PriorityCountsTest, CountsByPowersOfTwo) {
  const PriorityCounts counts =
      PriorityCounts::Of({0, 0.25f, 0.3f, 1, 1.5f, 1.9f, 2});
  EXPECT_THAT(counts.ToNumbers(), ElementsAre(7, 1, -2, 2, 0, 3, 1));
  RILL_ASSERT_OK_AND_ASSIGN(const auto read,
                            PriorityCounts::FromNumbers(counts.ToNumbers()));
  EXPECT_EQ(read.ToNumbers(), counts.ToNumbers());
  EXPECT_THAT(PriorityCounts::Of({0, 0}).ToNumbers(), ElementsAre(2, 2, 0));
  EXPECT_THAT(PriorityCounts::Of({}).ToNumbers(), ElementsAre(0, 0, 0));
}

TEST(PriorityCountsTest, NumbersThatAreNoHistogramAreRefused) {
  const std::vector<std::vector<int64_t>> all = {{},
                                                 {1, 0},
                                                 {1, 0, 200, 1},
                                                 {-1, 0, 0},
                                                 {kMost, 0, 0},
                                                 {1, 0, kMost},
                                                 {1, 0, kLeast, 1},
                                                 {1, 0, 0, kMost},
                                                 {1, 0, 0, -1}};
  for (const auto& numbers : all) {
    EXPECT_THAT(PriorityCounts::FromNumbers(numbers), IsDataLoss());
  }
}

}  // namespace
}  // namespace rill
