// SPDX-License-Identifier: Apache-2.0
// The host's part of a scatter; needs no device.
#include "rill/device/cuda/row_list.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rill::cuda_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KeepLastPlacesTest, RowsThatDifferKeepTheirPlaces) {
  const LastPlaces kept = KeepLastPlaces({5, 3, 9});
  EXPECT_THAT(kept.rows, ElementsAre(5, 3, 9));
  EXPECT_THAT(kept.places, IsEmpty());
}

TEST(KeepLastPlacesTest, RepeatedRowKeepsItsLastPlaceOnly) {
  const LastPlaces kept = KeepLastPlaces({5, 3, 5, 9, 3, 5});
  EXPECT_THAT(kept.rows, ElementsAre(9, 3, 5));
  EXPECT_THAT(kept.places, ElementsAre(3, 4, 5));
}

TEST(KeepLastPlacesTest, NothingStaysNothing) {
  EXPECT_THAT(KeepLastPlaces({}).rows, IsEmpty());
}

}  // namespace
}  // namespace rill::cuda_internal
