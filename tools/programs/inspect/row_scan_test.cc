// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/row_scan.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

template <typename T>
Tensor Column(const std::vector<T>& values) {
  const Tensor column =
      *Tensor::Empty(DTypeOf<T>, {static_cast<int64_t>(values.size()), 1});
  for (size_t i = 0; i < values.size(); ++i) column.data<T>()[i] = values[i];
  return column;
}

// Rows of rewards whose done is 1, with ids where there are any.
TensorDict Rows(const std::vector<float>& rewards,
                const std::vector<bool>& done,
                const std::vector<int64_t>& ids = {}) {
  TensorDict rows({static_cast<int64_t>(rewards.size())});
  RILL_EXPECT_OK(rows.Set("next/reward", Column(rewards)));
  if (!done.empty()) {
    const Tensor column =
        *Tensor::Zeros(DType::kBool, {static_cast<int64_t>(done.size()), 1});
    for (size_t i = 0; i < done.size(); ++i) column.data<bool>()[i] = done[i];
    RILL_EXPECT_OK(rows.Set("next/done", column));
  }
  if (!ids.empty()) {
    RILL_EXPECT_OK(rows.Set("collector/traj_ids", Column(ids)));
  }
  return rows;
}

RowScan ScanOf(const TensorDict& rows) {
  return RowScan(
      [&](absl::string_view key) { return rows.Find(key) != nullptr; });
}

Facts Finish(RowScan scan) {
  Facts facts;
  scan.Finish(&facts);
  return facts;
}

TEST(RowScanTest, EndFlagsEndEpisodesAndTheirRewardsAddUp) {
  const TensorDict rows =
      Rows({1, 2, 4, 8, 16, 32}, {false, true, false, false, true, false});
  RowScan scan = ScanOf(rows);
  EXPECT_THAT(scan.keys(), ElementsAre("next/done", "next/reward"));
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(rows));
  const Facts facts = Finish(scan);
  ASSERT_TRUE(facts.episodes.has_value());
  EXPECT_EQ(facts.episodes->partial, 1);
  EXPECT_EQ(facts.episodes->lengths.count, 2);
  EXPECT_EQ(facts.episodes->lengths.min, 2);
  EXPECT_EQ(facts.episodes->lengths.max, 3);
  EXPECT_EQ(facts.episodes->returns->min, 3);
  EXPECT_EQ(facts.episodes->returns->max, 28);
  EXPECT_EQ(facts.episodes->returns->mean(), 15.5);
  EXPECT_EQ(facts.rows_read, 6);
}

TEST(RowScanTest, PiecesAreOneLane) {
  RowScan scan = ScanOf(Rows({1}, {false}));
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(Rows({1, 2}, {false, false})));
  RILL_ASSERT_OK(scan.Add(Rows({}, {})));
  RILL_ASSERT_OK(scan.Add(Rows({4}, {true})));
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(Rows({8}, {true})));
  const Facts facts = Finish(scan);
  EXPECT_EQ(facts.episodes->lengths.count, 2);
  EXPECT_EQ(facts.episodes->returns->total, 15);
  EXPECT_EQ(facts.episodes->partial, 0);
}

TEST(RowScanTest, FirstEpisodeOfALaneThatLostRowsIsCut) {
  RowScan scan = ScanOf(Rows({1}, {false}));
  scan.BeginLane(false);
  RILL_ASSERT_OK(scan.Add(Rows({1, 2, 4}, {true, false, true})));
  scan.Gap();
  RILL_ASSERT_OK(scan.Add(Rows({8, 16}, {true, true})));
  const Facts facts = Finish(scan);
  EXPECT_EQ(facts.episodes->partial, 2);
  EXPECT_EQ(facts.episodes->returns->total, 22);
}

TEST(RowScanTest, RowsThatBeginEpisodesAreKnownByIsInit) {
  TensorDict rows = Rows({1, 2}, {true, false});
  RILL_ASSERT_OK(rows.Set("is_init", *Tensor::Zeros(DType::kBool, {2, 1})));
  rows.Find("is_init")->data<bool>()[0] = true;
  RowScan scan = ScanOf(rows);
  scan.BeginLane(false);
  RILL_ASSERT_OK(scan.Add(rows));
  EXPECT_EQ(Finish(scan).episodes->lengths.count, 1);
}

TEST(RowScanTest, ProducersMayTakeTurnsInALane) {
  const TensorDict rows = Rows(
      {1, 10, 2, 20, 4}, {false, false, false, true, true}, {7, 9, 7, 9, 7});
  RowScan scan = ScanOf(rows);
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(rows));
  const Facts facts = Finish(scan);
  EXPECT_EQ(facts.episodes->lengths.count, 2);
  EXPECT_EQ(facts.episodes->returns->min, 7);
  EXPECT_EQ(facts.episodes->returns->max, 30);
}

TEST(RowScanTest, WithoutEndFlagsTheNextIdEndsAnEpisode) {
  const TensorDict rows = Rows({1, 2, 4}, {}, {3, 3, 4});
  RowScan scan = ScanOf(rows);
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(rows));
  const Facts facts = Finish(scan);
  EXPECT_EQ(facts.episodes->lengths.count, 1);
  EXPECT_EQ(facts.episodes->returns->total, 3);
  EXPECT_EQ(facts.episodes->partial, 1);
}

TEST(RowScanTest, OtherDtypesAndBytesOfAnyBool) {
  TensorDict rows({2});
  const Tensor done = *Tensor::Zeros(DType::kBool, {2});
  done.data<uint8_t>()[1] = 7;
  RILL_ASSERT_OK(rows.Set("next/terminated", done));
  RILL_ASSERT_OK(rows.Set("next/reward", Column<int64_t>({3, 4})));
  RILL_ASSERT_OK(rows.Set("policy_version", Column<int64_t>({9, 5})));
  RowScan scan = ScanOf(rows);
  scan.BeginLane(true);
  RILL_ASSERT_OK(scan.Add(rows));
  const Facts facts = Finish(scan);
  EXPECT_EQ(facts.episodes->returns->total, 7);
  EXPECT_THAT(facts.policy_versions, Optional(Pair(5, 9)));
}

TEST(RowScanTest, RewardsOfSeveralElementsAreNoReturns) {
  TensorDict rows({1});
  RILL_ASSERT_OK(rows.Set("next/done", *Tensor::Zeros(DType::kBool, {1, 1})));
  RILL_ASSERT_OK(
      rows.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {1, 2})));
  RowScan scan = ScanOf(rows);
  RILL_ASSERT_OK(scan.Add(rows));
  EXPECT_FALSE(Finish(scan).episodes->returns.has_value());
  TensorDict wide({1});
  RILL_ASSERT_OK(wide.Set("next/done", *Tensor::Zeros(DType::kBool, {1, 3})));
  EXPECT_THAT(ScanOf(wide).Add(wide),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RowScanTest, RowsWithoutAnyOfThemHaveNoEpisodes) {
  TensorDict rows({1});
  RILL_ASSERT_OK(rows.Set("x", Column<float>({1})));
  RowScan scan = ScanOf(rows);
  EXPECT_TRUE(scan.keys().empty());
  RILL_ASSERT_OK(scan.Add(rows));
  EXPECT_FALSE(Finish(scan).episodes.has_value());
}

}  // namespace
}  // namespace rill::inspect
