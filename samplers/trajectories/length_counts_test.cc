// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/length_counts.h"

#include <cstdint>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::samplers_internal {
namespace {

TEST(LengthCountsTest, LongestIsZeroWhereThereIsNone) {
  LengthCounts counts;
  EXPECT_EQ(counts.longest(), 0);
  counts.Set(5, 0);  // Never was one.
  EXPECT_EQ(counts.longest(), 0);
  counts.Set(5, 3);
  EXPECT_EQ(counts.longest(), 3);
  counts.Set(5, 0);
  EXPECT_EQ(counts.longest(), 0);
  counts.Set(5, 3);
  counts.Clear();
  EXPECT_EQ(counts.longest(), 0);
}

TEST(LengthCountsTest, MemoryGrowsWithMembersAndNotWithEqualLengths) {
  LengthCounts counts;
  counts.Set(99, 7);
  const int64_t before = counts.memory_bytes();
  EXPECT_GE(before, 800);
  for (int32_t member = 0; member < 99; ++member) counts.Set(member, 7);
  EXPECT_EQ(counts.memory_bytes(), before);
}

// Few lengths (several members of the longest) and many (most are alone).
TEST(LengthCountsTest, AgreesWithAMultiset) {
  const Rng rng(20240803);
  for (const int64_t lengths : {3, 12, 1000}) {
    LengthCounts counts;
    std::map<int32_t, int64_t> by_member;
    std::multiset<int64_t> sorted;
    for (uint32_t i = 0; i < 5000; ++i) {
      if (rng.UniformInt(lengths, 4 * i, 200) == 0) {
        counts.Clear();
        by_member.clear();
        sorted.clear();
      }
      const auto member =
          static_cast<int32_t>(rng.UniformInt(lengths, 4 * i + 1, 30));
      const bool removes = rng.UniformInt(lengths, 4 * i + 2, 3) == 0;
      const int64_t length =
          removes ? 0 : rng.UniformInt(lengths, 4 * i + 3, lengths) + 1;
      counts.Set(member, length);
      int64_t& old = by_member[member];
      if (old > 0) sorted.erase(sorted.find(old));
      if (length > 0) sorted.insert(length);
      old = length;
      ASSERT_EQ(counts.longest(), sorted.empty() ? 0 : *sorted.rbegin())
          << lengths << " lengths, operation " << i;
    }
  }
}

}  // namespace
}  // namespace rill::samplers_internal
