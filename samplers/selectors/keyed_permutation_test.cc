// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/selectors/keyed_permutation.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/testing/chi_square.h"

namespace rill::samplers_internal {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSeed = 17;
constexpr int64_t kLarge = KeyedPermutation::kListed + 1000;  // A network.

std::vector<int64_t> First(KeyedPermutation& order, uint64_t seed,
                           uint64_t number, int64_t size, int64_t count) {
  order.Set(seed, number, size);
  std::vector<int64_t> values;
  for (int64_t place = 0; place < count; ++place) {
    values.push_back(order.At(place));
  }
  return values;
}

TEST(KeyedPermutationTest, HoldsEveryNumberOnce) {
  KeyedPermutation order;
  for (int64_t size : {0, 1, 2, 3, 100, 4095, 4096, 4097, 4098, 4225, 4226,
                       9999, 10000, 10001, 65536, 70000}) {
    for (uint64_t number = 0; number < 3; ++number) {
      std::vector<bool> seen(size, false);
      for (int64_t value : First(order, kSeed, number, size, size)) {
        ASSERT_GE(value, 0);
        ASSERT_LT(value, size);
        ASSERT_FALSE(seen[value]) << value << " of " << size;
        seen[value] = true;
      }
    }
  }
}

TEST(KeyedPermutationTest, WorksForMoreNumbersThanMemoryHolds) {
  KeyedPermutation order;
  const int64_t size = int64_t{1} << 62;
  order.Set(kSeed, 1, size);
  for (int64_t place : {int64_t{0}, size / 3, size - 1}) {
    EXPECT_GE(order.At(place), 0);
    EXPECT_LT(order.At(place), size);
  }
}

TEST(KeyedPermutationTest, OrdersOfFewNumbersAreEquallyLikely) {
  KeyedPermutation order;
  std::vector<int64_t> counts(120, 0);
  for (uint64_t number = 0; number < 20'000; ++number) {
    ++counts.at(RankOf(First(order, kSeed, number, 5, 5)));
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(120), 1e-9));
}

// The network: where a number comes to lie, by its size and by its place in a
// row of the network (of 72 x 71 numbers).
TEST(KeyedPermutationTest, NumbersOfANetworkAreUniformAtEveryPlace) {
  constexpr int64_t kColumns = 71;
  KeyedPermutation order;
  for (int64_t place : {int64_t{0}, int64_t{1}, kColumns, kLarge - 1}) {
    std::vector<int64_t> tenths(10, 0), columns(kColumns, 0);
    for (uint64_t number = 0; number < 20'000; ++number) {
      order.Set(kSeed, number, kLarge);
      const int64_t value = order.At(place);
      ++tenths[value * 10 / kLarge];
      ++columns[value % kColumns];
    }
    std::vector<double> tenth_shares(10, 0), column_shares(kColumns, 0);
    for (int64_t value = 0; value < kLarge; ++value) {
      tenth_shares[value * 10 / kLarge] += 1.0 / kLarge;
      column_shares[value % kColumns] += 1.0 / kLarge;
    }
    EXPECT_THAT(tenths, DistributedAs(tenth_shares, 1e-9)) << place;
    EXPECT_THAT(columns, DistributedAs(column_shares, 1e-9)) << place;
  }
}

TEST(KeyedPermutationTest, PairsOfANetworkAreIndependent) {
  constexpr int64_t kColumns = 71;
  KeyedPermutation order;
  // Neighbours in a row and in a column, and far ones.
  for (int64_t other : {int64_t{1}, kColumns, kColumns + 1, kLarge - 1}) {
    std::vector<int64_t> pairs(100, 0), same_column(2, 0);
    constexpr uint64_t kOrders = 20'000;
    for (uint64_t number = 0; number < kOrders; ++number) {
      order.Set(kSeed, number, kLarge);
      const int64_t a = order.At(0), b = order.At(other);
      ++pairs[a * 10 / kLarge * 10 + b * 10 / kLarge];
      ++same_column[a % kColumns == b % kColumns];
    }
    // Without replacement: about 1 in 5000 away from a product.
    EXPECT_THAT(pairs, DistributedAs(UniformProbabilities(100), 1e-9)) << other;
    const double same = 1.0 / kColumns;
    EXPECT_THAT(same_column, DistributedAs({1 - same, same}, 1e-9)) << other;
  }
}

TEST(KeyedPermutationTest, IsAFunctionOfSeedNumberAndSize) {
  KeyedPermutation order, other;
  const std::vector<int64_t> values = First(order, kSeed, 3, kLarge, 20);
  EXPECT_NE(First(other, kSeed, 4, kLarge, 20), values);
  EXPECT_NE(First(other, kSeed + 1, 3, kLarge, 20), values);
  EXPECT_NE(First(other, kSeed, 3, 2 * kLarge, 20), values);
  EXPECT_NE(First(other, kSeed, 3, 100, 20), values);
  EXPECT_EQ(First(other, kSeed, 3, kLarge, 20), values);
}

// Part of the reproducibility contract.
TEST(KeyedPermutationTest, ValuesArePinned) {
  KeyedPermutation order;
  EXPECT_THAT(First(order, 1, 2, 10, 5), ElementsAre(9, 8, 3, 2, 4));
  EXPECT_THAT(First(order, 1, 2, 1'000'000'000'000, 3),
              ElementsAre(291334369552, 730138604798, 178157332970));
}

}  // namespace
}  // namespace rill::samplers_internal
