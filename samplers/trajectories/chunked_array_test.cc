// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/trajectories/chunked_array.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace rill::samplers_internal {
namespace {

TEST(ChunkedArrayTest, GrowsWithoutMovingAnything) {
  ChunkedArray<int> array;
  array.Grow();
  const int* const first = &array[0];
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(array[array.size() - 1], 0);
    array[array.size() - 1] = i;
    array.Grow();
  }
  EXPECT_EQ(array.size(), 5001u);
  EXPECT_EQ(&array[0], first);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(array[static_cast<size_t>(i)], i);
  }
}

TEST(ChunkedArrayTest, ClearedIsEmptyAndAllZeroAgain) {
  ChunkedArray<int> array;
  array.Grow();
  array[0] = 7;
  array.clear();
  EXPECT_EQ(array.size(), 0u);
  array.Grow();
  EXPECT_EQ(array[0], 0);
}

}  // namespace
}  // namespace rill::samplers_internal
