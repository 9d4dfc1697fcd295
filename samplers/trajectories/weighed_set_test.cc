// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/weighed_set.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"

namespace rill::samplers_internal {
namespace {

using ::testing::ElementsAre;

TEST(WeighedSetTest, LastTakesThePlaceOfOneThatGoes) {
  WeighedSet set;
  set.Set(7, 1);
  set.Set(3, 2);
  set.Set(5, 4);
  EXPECT_THAT(set.members(), ElementsAre(7, 3, 5));
  set.Set(7, 0);
  EXPECT_THAT(set.members(), ElementsAre(5, 3));
  EXPECT_EQ(set.total(), 6);
  EXPECT_EQ(set.Find(3).member, 5);
  EXPECT_EQ(set.Find(4).member, 3);
  EXPECT_EQ(set.Find(5).rest, 1);
  set.Set(9, 0);  // Never was one.
  EXPECT_EQ(set.size(), 2);
}

// The obvious way to do the same.
class Plain {
 public:
  void Set(int32_t member, int64_t weight) {
    const auto found =
        std::find_if(list.begin(), list.end(),
                     [&](const auto& entry) { return entry.first == member; });
    if (found == list.end()) {
      if (weight > 0) list.push_back({member, weight});
    } else if (weight > 0) {
      found->second = weight;
    } else {
      *found = list.back();
      list.pop_back();
    }
  }

  std::vector<std::pair<int32_t, int64_t>> list;
};

void ExpectEqual(const Plain& plain, const WeighedSet& set) {
  ASSERT_EQ(set.size(), static_cast<int64_t>(plain.list.size()));
  int64_t total = 0;
  for (size_t i = 0; i < plain.list.size(); ++i) {
    const auto [member, weight] = plain.list[i];
    ASSERT_EQ(set.members()[i], member);
    ASSERT_EQ(set.WeightOf(member), weight);
    for (const int64_t rest : {int64_t{0}, weight - 1}) {
      const WeighedSet::Hit hit = set.Find(total + rest);
      ASSERT_EQ(hit.member, member);
      ASSERT_EQ(hit.rest, rest);
    }
    total += weight;
  }
  ASSERT_EQ(set.total(), total);
}

// Sizes go up and down over the borders of one, two and three levels.
TEST(WeighedSetTest, AgreesWithAPlainList) {
  const Rng rng(20240722);
  for (const int32_t members : {3, 18, 40, 300, 5000}) {
    Plain plain;
    WeighedSet set;
    const uint32_t operations = members < 1000 ? 4000 : 20000;
    for (uint32_t i = 0; i < operations; ++i) {
      const auto member =
          static_cast<int32_t>(rng.UniformInt(members, 4 * i, members));
      // Waves of growing and of shrinking.
      const bool grows = i / (2 * members) % 2 == 0;
      const bool removes =
          rng.UniformInt(members, 4 * i + 1, 8) < (grows ? 1 : 7);
      const int64_t weight =
          removes ? 0
                  : rng.UniformInt(members, 4 * i + 2, int64_t{1} << 40) + 1;
      plain.Set(member, weight);
      set.Set(member, weight);
      if (i % (1 + members / 16) == 0) ExpectEqual(plain, set);
      if (i == operations / 2) {
        std::reverse(plain.list.begin(), plain.list.end());
        std::vector<int32_t> order;
        for (const auto& entry : plain.list) order.push_back(entry.first);
        set.Reorder(order);
      }
    }
    ExpectEqual(plain, set);
  }
}

}  // namespace
}  // namespace rill::samplers_internal
