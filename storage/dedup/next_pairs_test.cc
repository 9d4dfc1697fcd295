// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dedup/next_pairs.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

using ::testing::ElementsAre;

LeafSpec Wide() { return LeafSpec::Unbounded(DType::kFloat32, {3}); }

// The keys of the pairs' first leaves.
std::vector<std::string> Found(
    const std::vector<std::pair<const char*, LeafSpec>>& leaves,
    const std::vector<size_t>& kept = {}) {
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) RILL_EXPECT_OK(spec.Set(key, leaf));
  std::vector<std::string> keys;
  for (const NextPair& pair : FindNextPairs(spec, kept)) {
    keys.push_back(spec.leaves()[pair.leaf].key);
    EXPECT_EQ(spec.leaves()[pair.next].key, "next/" + keys.back());
  }
  return keys;
}

TEST(NextPairsTest, TellsObservationsFromTheRest) {
  EXPECT_THAT(Found({{"observation", Wide()},
                     {"next/observation", Wide()},
                     {"agents/seen", Wide()},
                     {"next/agents/seen", Wide()},
                     {"action", Wide()},
                     {"next/alone", Wide()},
                     {"count", LeafSpec::Unbounded(DType::kInt64, {})},
                     {"next/count", LeafSpec::Unbounded(DType::kInt64, {})}}),
              ElementsAre("observation", "agents/seen", "count"));
}

TEST(NextPairsTest, FlagsAndRewardsAreStored) {
  std::vector<std::pair<const char*, LeafSpec>> leaves;
  for (const char* key :
       {"done", "next/done", "terminated", "next/terminated", "truncated",
        "next/truncated", "reward", "next/reward", "agents/reward",
        "next/agents/reward"}) {
    leaves.emplace_back(key, Wide());
  }
  EXPECT_THAT(Found(leaves), ElementsAre());
}

TEST(NextPairsTest, OtherDtypesShapesAndNarrowLeavesAreStored) {
  EXPECT_THAT(
      Found({{"dtype", Wide()},
             {"next/dtype", LeafSpec::Unbounded(DType::kInt32, {3})},
             {"shape", Wide()},
             {"next/shape", LeafSpec::Unbounded(DType::kFloat32, {3, 1})},
             {"narrow", LeafSpec::Unbounded(DType::kUInt8, {4})},
             {"next/narrow", LeafSpec::Unbounded(DType::kUInt8, {4})},
             {"five", LeafSpec::Unbounded(DType::kUInt8, {5})},
             {"next/five", LeafSpec::Unbounded(DType::kUInt8, {5})},
             {"none", LeafSpec::Unbounded(DType::kUInt8, {0})},
             {"next/none", LeafSpec::Unbounded(DType::kUInt8, {0})}}),
      ElementsAre("five"));
}

TEST(NextPairsTest, WhatIsNotStoredIsSharedByNobody) {
  EXPECT_THAT(Found({{"seen", Wide()},
                     {"next/seen", Wide()},
                     {"next/next/seen", Wide()}}),
              ElementsAre("seen"));
}

TEST(NextPairsTest, KeptLeavesAreStored) {
  EXPECT_THAT(Found({{"a", Wide()},
                     {"next/a", Wide()},
                     {"b", Wide()},
                     {"next/b", Wide()}},
                    /*kept=*/{1, 2}),
              ElementsAre("b"));
}

}  // namespace
}  // namespace rill::storage_internal
