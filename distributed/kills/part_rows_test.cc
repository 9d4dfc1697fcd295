// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/part_rows.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PartRowsTest, RunsAreConsecutiveRowsOfOneOrigin) {
  std::vector<TensorDict> parts;
  for (const auto& [start, first, count] :
       {std::tuple(0, 0, 3), std::tuple(0, 3, 2), std::tuple(0, 7, 1),
        std::tuple(1, 8, 2)}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict rows,
        MakeRows({.producer = 2, .start = start}, first, count));
    RILL_ASSERT_OK_AND_ASSIGN(parts.emplace_back(), rows.Reshape({count}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, Cat(parts));
  std::vector<std::string> runs;
  RILL_ASSERT_OK(VisitRuns(
      rows, [&](const RowOrigin& origin, int64_t first, int64_t last) {
        runs.push_back(absl::StrCat(origin.producer, " ", origin.start, ": ",
                                    first, "-", last));
      }));
  EXPECT_THAT(runs, ElementsAre("2 0: 0-4", "2 0: 7-7", "2 1: 8-9"));
}

TEST(PartRowsTest, ARowWhosePartsAreOfTwoRowsIsFound) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict rows, MakeRows({.producer = 1}, 5, 3));
  RILL_EXPECT_OK(CheckRows(rows));
  RILL_ASSERT_OK_AND_ASSIGN(const auto numbers, rows.Flat<int64_t>("number"));
  numbers[1] = 9;
  EXPECT_THAT(CheckRows(rows), StatusIs(absl::StatusCode::kDataLoss,
                                        HasSubstr("row 9 of producer 1")));
}

}  // namespace
}  // namespace rill
