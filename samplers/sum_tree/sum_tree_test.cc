// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/sum_tree/sum_tree.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/peak_memory.h"

namespace rill::samplers_internal {
namespace {

// The definition of a tree, word for word.
class PlainTree {
 public:
  explicit PlainTree(std::vector<double> leaves) : levels_{std::move(leaves)} {
    do {
      std::vector<double>& below = levels_.back();
      below.resize((below.size() + 7) / 8 * 8);
      std::vector<double> sums;
      for (size_t i = 0; i < below.size(); i += 8) {
        const double* c = &below[i];
        sums.push_back(((c[0] + c[1]) + (c[2] + c[3])) +
                       ((c[4] + c[5]) + (c[6] + c[7])));
      }
      levels_.push_back(sums);
    } while (levels_.back().size() > 1);
  }
  double total() const { return levels_.back()[0]; }
  int64_t Find(double target) const {
    int64_t node = 0;
    for (size_t level = levels_.size() - 1; level-- > 0;) {
      const double* c = &levels_[level][node * 8];
      const double half = (c[0] + c[1]) + (c[2] + c[3]);
      const double most = half + (c[4] + c[5]);
      const double sums[] = {
          0,    c[0],        c[0] + c[1], (c[0] + c[1]) + c[2],
          half, half + c[4], most,        most + c[6]};
      int64_t last = -1;
      for (int64_t k = 0; k < 8; ++k) {
        if (c[k] > 0 && sums[k] <= target) last = k;
      }
      target -= sums[last];
      node = node * 8 + last;
    }
    return node;
  }

 private:
  std::vector<std::vector<double>> levels_;
};

// Around the powers of 8, and some between.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes = {1, 2, 3, 5, 20, 100, 1000, 2500};
  for (int64_t power : {8, 64, 512, 4096, 32768}) {
    for (int64_t size : {power - 1, power, power + 1}) sizes.push_back(size);
  }
  return sizes;
}

// Values of very different sizes, a third of them 0.
std::vector<double> RandomValues(const Rng& rng, uint64_t batch, int64_t size) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) {
    const auto draw = static_cast<uint32_t>(3 * i);
    if (rng.UniformInt(batch, draw, 3) == 0) continue;
    values[i] = std::ldexp(rng.UniformDouble(batch, draw + 1),
                           rng.UniformInt(batch, draw + 2, 40) - 20);
  }
  return values;
}

std::vector<int64_t> Iota(int64_t size) {
  std::vector<int64_t> slots(size);
  for (int64_t i = 0; i < size; ++i) slots[i] = i;
  return slots;
}

int64_t FindOne(const SumTree& tree, double target) {
  int64_t slot = -1;
  tree.Find({&target, 1}, {&slot, 1});
  return slot;
}

TEST(SumTreeTest, Example) {
  SumTree tree(100);
  tree.Set({7, 40}, {1.0, 3.0});
  EXPECT_EQ(tree.total(), 4);
  int64_t found[2];
  tree.Find({0.5, 1.5}, absl::MakeSpan(found));
  EXPECT_THAT(found, ::testing::ElementsAre(7, 40));
}

TEST(SumTreeTest, IsTheTreeThatTheHeaderDefines) {
  const Rng rng(/*seed=*/5);
  ForEachTarget([&] {
    for (const int64_t size : Sizes()) {
      const std::vector<double> values = RandomValues(rng, size, size);
      SumTree tree(size);
      tree.Set(Iota(size), values);
      const PlainTree plain(values);
      ASSERT_EQ(tree.total(), plain.total()) << size;
      if (plain.total() == 0) continue;
      std::vector<double> targets;
      for (uint32_t i = 0; i < 1000; ++i) {
        targets.push_back(rng.UniformDouble(size, 1u << 20 | i) * tree.total());
      }
      std::vector<int64_t> found(targets.size(), -1);
      tree.Find(targets, absl::MakeSpan(found));
      for (size_t i = 0; i < targets.size(); ++i) {
        ASSERT_EQ(found[i], plain.Find(targets[i])) << size;
      }
    }
  });
}

// Whole numbers have exact sums: the running sum itself is the oracle.
TEST(SumTreeTest, FindsTheSlotWhoseShareOfTheRunningSumHoldsTheTarget) {
  const Rng rng(/*seed=*/6);
  ForEachTarget([&] {
    for (const int64_t size : {1, 7, 8, 9, 63, 64, 65, 511, 513, 600}) {
      std::vector<double> values(size);
      for (int64_t i = 0; i < size; ++i) {
        values[i] = static_cast<double>(
            rng.UniformInt(size, static_cast<uint32_t>(i), 4));
      }
      values[size - 1] = 1;  // At least one.
      SumTree tree(size);
      tree.Set(Iota(size), values);
      std::vector<int64_t> slot_at;
      for (int64_t i = 0; i < size; ++i) {
        slot_at.insert(slot_at.end(), static_cast<size_t>(values[i]), i);
      }
      ASSERT_EQ(tree.total(), static_cast<double>(slot_at.size()));
      for (size_t at = 0; at < slot_at.size(); ++at) {
        const auto target = static_cast<double>(at);
        ASSERT_EQ(FindOne(tree, target), slot_at[at]);
        ASSERT_EQ(FindOne(tree, std::nextafter(target + 1, 0)), slot_at[at]);
      }
    }
  });
}

TEST(SumTreeTest, TreeIsAFunctionOfItsLeavesWhateverTheHistory) {
  const Rng rng(/*seed=*/7);
  ForEachTarget([&] {
    for (const int64_t size : {1, 9, 64, 1000, 5000, 32769}) {
      SumTree tree(size);
      std::vector<double> leaves(size);
      for (uint64_t round = 0; round < 30; ++round) {
        // From one slot to more than a chunk; slots come twice.
        const int64_t count = rng.UniformInt(round, 0, 700) + 1;
        std::vector<int64_t> slots;
        const std::vector<double> values = RandomValues(rng, round, count);
        const int64_t first = rng.UniformInt(round, 1, size);
        for (int64_t i = 0; i < count; ++i) {
          slots.push_back(round % 2 == 0
                              ? (first + i) % size
                              : rng.UniformInt(round, 5000 + i, size));
          leaves[slots.back()] = values[i];
        }
        tree.Set(slots, values);
        ASSERT_EQ(tree.total(), PlainTree(leaves).total())
            << size << ", round " << round;
      }
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(tree.Get(i), leaves[i]);
    }
  });
}

TEST(SumTreeTest, P13_NeverFindsAZeroOrWhatIsPastTheEnd) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Rng rng(/*seed=*/8);
  ForEachTarget([&] {
    for (const int64_t size : Sizes()) {
      std::vector<double> values = RandomValues(rng, 1, size);
      values[size / 2] = 0.1;
      int64_t first = 0;
      while (values[first] == 0) ++first;
      int64_t last = size - 1;
      while (values[last] == 0) --last;
      SumTree tree(size);
      tree.Set(Iota(size), values);
      const double total = tree.total();
      EXPECT_EQ(FindOne(tree, 0), first);
      EXPECT_EQ(FindOne(tree, -1), first);
      EXPECT_EQ(FindOne(tree, -kInfinity), first);
      EXPECT_EQ(FindOne(tree, std::nan("")), first);
      for (const double target :
           {total, std::nextafter(total, kInfinity), 2 * total, kInfinity}) {
        ASSERT_EQ(FindOne(tree, target), last) << size;
      }
      // Where rounding is at its worst: at and beside each running sum.
      double sum = 0;
      for (int64_t i = 0; i < size && i < 3000; ++i) {
        sum += values[i];
        for (const double target :
             {std::nextafter(sum, 0), sum, std::nextafter(sum, kInfinity)}) {
          ASSERT_GT(tree.Get(FindOne(tree, target)), 0) << size;
        }
      }
    }
  });
}

TEST(SumTreeTest, OneValueAmongZerosIsAlwaysFound) {
  for (const int64_t size : Sizes()) {
    SumTree tree(size);
    for (const int64_t slot : {int64_t{0}, size / 3, size - 1}) {
      tree.Set({slot}, {1e-300});
      EXPECT_EQ(tree.total(), 1e-300);
      EXPECT_EQ(FindOne(tree, 0), slot);
      EXPECT_EQ(FindOne(tree, 0.99e-300), slot);
      tree.Set({slot}, {0});
      EXPECT_EQ(tree.total(), 0);
    }
  }
}

TEST(SumTreeTest, LaterOfEqualSlotsCounts) {
  SumTree tree(100);
  tree.Set({2, 50, 2, 2}, {1, 7, 5, 3});
  EXPECT_EQ(tree.Get(2), 3);
  EXPECT_EQ(tree.total(), 10);
}

TEST(SumTreeTest, NoSlots) {
  SumTree none;
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.total(), 0);
  none.Set({}, {});
  none.Find({}, {});
  SumTree moved(9);
  moved.Set({8}, {2});
  none = std::move(moved);
  EXPECT_EQ(none.total(), 2);
}

TEST(SumTreeTest, P12_SmallValuesBesideALargeOneAreNotLost) {
  constexpr int64_t kSize = (1 << 20) + 1;
  std::vector<double> values(kSize, 1e-4);
  values.back() = 1e5;
  SumTree tree(kSize);
  tree.Set(Iota(kSize), values);
  EXPECT_NEAR(tree.total() / (1e5 + 1e-4 * (1 << 20)), 1, 1e-14);
  // Rewritten over and over, nothing creeps in.
  const double total = tree.total();
  for (int round = 0; round < 3; ++round) {
    for (int64_t slot = 0; slot < kSize; slot += 4099) {
      tree.Set({slot, kSize - 1}, {1e8, 1e-7});
      tree.Set({slot, kSize - 1}, {1e-4, 1e5});
    }
  }
  EXPECT_EQ(tree.total(), total);
}

// 600M slots are 5.5 GB of addresses, and as much memory under TSan.
TEST(SumTreeTest, ManySlotsTakeMemoryOnlyWhereTheyWereSet) {
  constexpr int64_t kSize = kPeakMemoryIsOwn ? 600'000'000 : 1'000'000;
  const int64_t before = PeakMemoryBytes();
  SumTree tree(kSize);
  tree.Set({0, 12'345, kSize / 2, kSize - 1}, {1, 2, 4, 8});
  EXPECT_EQ(tree.total(), 15);
  EXPECT_EQ(FindOne(tree, 3), kSize / 2);
  EXPECT_EQ(FindOne(tree, 14.5), kSize - 1);
  if (!kPeakMemoryIsOwn) GTEST_SKIP() << "TSan has memory of its own";
  EXPECT_LT(PeakMemoryBytes() - before, 1'000'000'000);
}

}  // namespace
}  // namespace rill::samplers_internal
