// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/sample_batches.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/slots/slot.h"

namespace rill::replay_internal {
namespace {

std::vector<Draw> SomeDraws() {
  std::vector<Draw> draws;
  for (int64_t i = 0; i < 130; ++i) {
    draws.push_back({.slot = i, .generation = 2 * i, .weight = 0.5f});
  }
  return draws;
}

TEST(SampleBatchesTest, EachNumberOfEachDrawIsInTheDigest) {
  const std::vector<Draw> draws = SomeDraws();
  std::set<uint32_t> digests = {DrawDigest(draws)};
  for (const size_t i : {size_t{0}, size_t{63}, size_t{64}, size_t{129}}) {
    std::vector<Draw> other = draws;
    other[i].slot += 1;
    digests.insert(DrawDigest(other));
    other = draws;
    other[i].generation += 1;
    digests.insert(DrawDigest(other));
    other = draws;
    other[i].weight = 0.25f;
    digests.insert(DrawDigest(other));
  }
  std::vector<Draw> swapped = draws;
  std::swap(swapped[3], swapped[77]);
  digests.insert(DrawDigest(swapped));
  digests.insert(DrawDigest(draws, {7}));
  digests.insert(DrawDigest(draws, {7, 8}));
  digests.insert(DrawDigest(draws, {8, 7}));
  digests.insert(DrawDigest(draws, {7, 9}));
  EXPECT_EQ(digests.size(), 1 + 3 * 4 + 5);
  EXPECT_EQ(DrawDigest(draws), DrawDigest(SomeDraws()));
}

TEST(SampleBatchesTest, EachSlotGenerationAndPriorityIsInTheDigest) {
  const std::vector<Draw> rows = SomeDraws();
  const std::vector<float> priorities(rows.size(), 0.5f);
  std::set<uint32_t> digests = {PriorityDigest(rows, priorities)};
  for (const size_t i : {size_t{0}, size_t{64}, size_t{129}}) {
    std::vector<Draw> other = rows;
    other[i].slot += 1;
    digests.insert(PriorityDigest(other, priorities));
    other = rows;
    other[i].generation += 1;
    digests.insert(PriorityDigest(other, priorities));
    std::vector<float> more = priorities;
    more[i] = 0.25f;
    digests.insert(PriorityDigest(rows, more));
  }
  EXPECT_EQ(digests.size(), 1 + 3 * 3);
}

}  // namespace
}  // namespace rill::replay_internal
