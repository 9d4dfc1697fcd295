// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/ensemble/share_split.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::replay_internal {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Splits batch after batch, and remembers what should have been given.
class Splits {
 public:
  explicit Splits(size_t parts) : carry(parts), given(parts), wanted(parts) {}

  const std::vector<int64_t>& Next(int64_t items,
                                   const std::vector<double>& shares) {
    SplitByShares(items, shares, absl::MakeSpan(carry), &counts);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), items);
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_GE(counts[i], 0);
      given[i] += counts[i];
      wanted[i] += static_cast<double>(items) * shares[i];
    }
    return counts;
  }
  double FurthestOff() const {
    double most = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      most =
          std::max(most, std::abs(wanted[i] - static_cast<double>(given[i])));
    }
    return most;
  }

  std::vector<double> carry;
  std::vector<int64_t> given;
  std::vector<double> wanted;
  std::vector<int64_t> counts;
};

std::vector<double> RandomShares(const Rng& rng, uint64_t round, size_t parts) {
  std::vector<double> shares(parts);
  double total = 0;
  for (size_t i = 0; i < parts; ++i) {
    const double u = rng.UniformDouble(round, static_cast<uint32_t>(i));
    total += shares[i] = u * u * u + 1e-4;  // Some small, some large.
  }
  for (double& share : shares) share /= total;
  return shares;
}

TEST(ShareSplitTest, PartsAreNeverAnItemOff) {
  const Rng rng(1);
  for (uint64_t round = 0; round < 60; ++round) {
    const size_t parts = 2 + round % 7;
    const std::vector<double> shares = RandomShares(rng, round, parts);
    Splits splits(parts);
    const double most = 1 - 1 / (2.0 * static_cast<double>(parts) - 2);
    for (uint32_t batch = 0; batch < 300; ++batch) {
      splits.Next(rng.UniformInt(round, 100 + batch, 40), shares);
      ASSERT_LE(splits.FurthestOff(), most + 1e-9);
    }
  }
}

TEST(ShareSplitTest, WhatCanBeWholeIs) {
  Splits splits(3);
  for (int batch = 0; batch < 1000; ++batch) {
    EXPECT_THAT(splits.Next(20, {0.35, 0.6, 0.05}), ElementsAre(7, 12, 1));
    EXPECT_THAT(splits.carry, Each(0.0));
  }
}

TEST(ShareSplitTest, SharesBelowAnItemComeEverySoOften) {
  Splits splits(2);
  int64_t rare = 0;
  for (int batch = 0; batch < 1000; ++batch) {
    const int64_t had = splits.Next(4, {0.99, 0.01})[1];
    EXPECT_LE(had, 1);
    rare += had;
  }
  EXPECT_EQ(rare, 40);
}

TEST(ShareSplitTest, TwoPartsKeepUpWithSharesThatChange) {
  const Rng rng(2);
  Splits splits(2);
  for (uint64_t batch = 0; batch < 2000; ++batch) {
    const double share = rng.UniformDouble(batch, 0);
    splits.Next(rng.UniformInt(batch, 1, 9), {share, 1 - share});
    ASSERT_LE(splits.FurthestOff(), 0.5 + 1e-9);
  }
}

TEST(ShareSplitTest, PartsWithoutShareHaveNoneWhatTheyAreOwed) {
  Splits splits(3);
  splits.Next(1, {0.4, 0.3, 0.3});
  splits.Next(1, {0, 0.5, 0.5});
  splits.Next(1, {0, 0.5, 0.5});
  for (int batch = 0; batch < 20; ++batch) {
    EXPECT_THAT(splits.Next(5, {0, 0, 1}), ElementsAre(0, 0, 5));
  }
  EXPECT_THAT(splits.Next(0, {0, 0.5, 0.5}), Each(0));
}

TEST(ShareSplitTest, OnePartHasAll) {
  Splits splits(1);
  EXPECT_THAT(splits.Next(7, {1.0}), ElementsAre(7));
}

}  // namespace
}  // namespace rill::replay_internal
