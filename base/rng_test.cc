// SPDX-License-Identifier: Apache-2.0
#include "rill/base/rng.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/chi_square.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

constexpr double kFalseAlarm = 1e-9;  // And the seeds are fixed.

// Random123 1.14.0, tests/kat_vectors, "philox4x32 10": counter, key, result.
struct KnownAnswer {
  uint32_t counter[4];
  uint32_t key[2];
  uint32_t result[4];
};
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

uint64_t Join(uint32_t low, uint32_t high) {
  return low | (static_cast<uint64_t>(high) << 32);
}

TEST(RngTest, Example) {
  Rng rng(/*seed=*/7, /*stream=*/RngStream::kSampler);
  int64_t slot = rng.UniformInt(/*batch=*/3, /*draw=*/0, /*bound=*/100);
  EXPECT_EQ(slot, rng.UniformInt(3, 0, 100));
  EXPECT_GE(slot, 0);
  EXPECT_LT(slot, 100);
}

TEST(RngTest, AgreesWithTheKnownAnswersOfRandom123) {
  for (const KnownAnswer& k : kKnownAnswers) {
    const Rng rng(Join(k.key[0], k.key[1]),
                  static_cast<RngStream>(k.counter[1] & 0xffff),
                  static_cast<uint16_t>(k.counter[1] >> 16));
    EXPECT_THAT(
        rng.Bits(Join(k.counter[2], k.counter[3]), k.counter[0]),
        ElementsAre(k.result[0], k.result[1], k.result[2], k.result[3]));
  }
}

// A checkpoint's (seed, batch number) relies on these: they never change. From
// an independent Philox.
TEST(RngTest, DrawsAreTheSameForEver) {
  const Rng rng(/*seed=*/1, RngStream::kSampler);
  EXPECT_EQ(rng.Bits64(0, 0), Join(rng.Bits(0, 0)[0], rng.Bits(0, 0)[1]));
  EXPECT_EQ(rng.Bits64(0, 0), 0x225c963c833ff8dc);
  EXPECT_EQ(rng.UniformInt(5, 6, 1000000), 980165);
  EXPECT_EQ(rng.UniformDouble(5, 6), std::ldexp(0x1f5d83a3717610, -53));
  EXPECT_EQ(rng.UniformFloat(5, 6), std::ldexp(0xfaec1d, -24));
}

TEST(RngTest, StreamIdsArePinned) {
  EXPECT_THAT(
      (std::vector<uint32_t>{static_cast<uint32_t>(RngStream::kUser),
                             static_cast<uint32_t>(RngStream::kSampler),
                             static_cast<uint32_t>(RngStream::kEnv),
                             static_cast<uint32_t>(RngStream::kPolicy),
                             static_cast<uint32_t>(RngStream::kInit),
                             static_cast<uint32_t>(RngStream::kTransform),
                             static_cast<uint32_t>(RngStream::kSpec)}),
      ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(RngTest, StreamsAndSubstreamsNeverCollide) {
  // Philox is a bijection of the counter, so equal blocks are equal ids.
  std::set<Rng::Block> blocks;
  int64_t expected = 0;
  for (uint32_t stream = 0; stream <= 6; ++stream) {
    for (uint32_t substream = 0; substream <= 0xffff; substream += 13) {
      const Rng rng(9, static_cast<RngStream>(stream),
                    static_cast<uint16_t>(substream));
      blocks.insert(rng.Bits(0, 0));
      ++expected;
    }
  }
  EXPECT_EQ(static_cast<int64_t>(blocks.size()), expected);
}

TEST(RngTest, SubstreamZeroIsTheStream) {
  EXPECT_EQ(Rng(3, RngStream::kEnv).Bits(1, 2),
            Rng(3, RngStream::kEnv, 0).Bits(1, 2));
}

TEST(RngTest, SeedBatchAndDrawAllCount) {
  const Rng::Block block = Rng(1).Bits(1, 1);
  EXPECT_NE(block, Rng(2).Bits(1, 1));
  EXPECT_NE(block, Rng(1 + (uint64_t{1} << 32)).Bits(1, 1));
  EXPECT_NE(block, Rng(1).Bits(2, 1));
  EXPECT_NE(block, Rng(1).Bits(1 + (uint64_t{1} << 32), 1));
  EXPECT_NE(block, Rng(1).Bits(1, 2));
}

TEST(BoundedIntTest, MapsTheWholeRange) {
  EXPECT_EQ(BoundedInt(0, 10), 0);
  EXPECT_EQ(BoundedInt(~uint64_t{0}, 10), 9);
  EXPECT_EQ(BoundedInt(~uint64_t{0}, 1), 0);
  EXPECT_EQ(BoundedInt(~uint64_t{0}, INT64_MAX), INT64_MAX - 1);
  // The first bits that give 1 of 3, and the ones before.
  EXPECT_EQ(BoundedInt(0x5555555555555555, 3), 0);
  EXPECT_EQ(BoundedInt(0x5555555555555556, 3), 1);
}

TEST(RngTest, IntegersAreUniform) {
  for (const int64_t bound : {2, 3, 10, 1000}) {
    const Rng rng(/*seed=*/bound, RngStream::kSampler);
    std::vector<int64_t> counts(bound);
    for (uint32_t i = 0; i < 200000; ++i) ++counts[rng.UniformInt(0, i, bound)];
    EXPECT_THAT(counts,
                DistributedAs(UniformProbabilities(bound), kFalseAlarm));
  }
}

// One draw a batch, as a sampler with batches of one row makes them.
TEST(RngTest, FirstDrawsOfBatchesAreUniform) {
  const Rng rng(/*seed=*/4);
  std::vector<int64_t> counts(64);
  for (uint64_t batch = 0; batch < 100000; ++batch) {
    ++counts[rng.UniformInt(batch, 0, 64)];
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(64), kFalseAlarm));
}

TEST(RngTest, PairsOfNeighbouringDrawsAreUniform) {
  const Rng rng(/*seed=*/5);
  std::vector<int64_t> counts(16 * 16);
  for (uint32_t i = 0; i < 100000; ++i) {
    ++counts[rng.UniformInt(0, i, 16) * 16 + rng.UniformInt(0, i + 1, 16)];
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(256), kFalseAlarm));
}

TEST(RngTest, StreamsAreIndependent) {
  std::vector<int64_t> counts(16 * 16);
  const Rng a(6, RngStream::kEnv), b(6, RngStream::kPolicy);
  for (uint32_t i = 0; i < 100000; ++i) {
    ++counts[a.UniformInt(0, i, 16) * 16 + b.UniformInt(0, i, 16)];
  }
  EXPECT_THAT(counts, DistributedAs(UniformProbabilities(256), kFalseAlarm));
}

TEST(RngTest, FractionsAreUniformInTheHalfOpenUnitInterval) {
  const Rng rng(/*seed=*/8);
  std::vector<int64_t> doubles(100), floats(100);
  for (uint32_t i = 0; i < 100000; ++i) {
    const double d = rng.UniformDouble(1, i);
    const float f = rng.UniformFloat(2, i);
    ASSERT_TRUE(d >= 0 && d < 1 && f >= 0 && f < 1);
    ASSERT_EQ(std::ldexp(d, 53), std::floor(std::ldexp(d, 53)));
    ASSERT_EQ(std::ldexp(f, 24), std::floor(std::ldexp(f, 24)));
    ++doubles[static_cast<int64_t>(d * 100)];
    ++floats[static_cast<int64_t>(f * 100)];
  }
  EXPECT_THAT(doubles, DistributedAs(UniformProbabilities(100), kFalseAlarm));
  EXPECT_THAT(floats, DistributedAs(UniformProbabilities(100), kFalseAlarm));
}

}  // namespace
}  // namespace rill
