// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_rows.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

class LaneRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor x,
                              Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
    RILL_ASSERT_OK(dict_.Set("x", std::move(x)));
  }
  TensorDict dict_{Shape({3})};
};

TEST_F(LaneRowsTest, AreTheElementsOfTheLeaf) {
  RILL_ASSERT_OK_AND_ASSIGN(absl::Span<float> rows,
                            LaneRows<float>("T", dict_, "x", {3, 2}));
  EXPECT_THAT(rows, ElementsAre(1, 2, 3, 4, 5, 6));
  rows[0] = 9;
  EXPECT_EQ(dict_.Find("x")->data<float>()[0], 9);
}

TEST_F(LaneRowsTest, NameAMissingLeaf) {
  EXPECT_THAT(LaneRows<float>("T::Step", dict_, "y", {3, 2}, "next/"),
              StatusIs(kInvalidArgument,
                       HasSubstr("T::Step: leaf \"next/y\" is missing, want "
                                 "float32[3, 2]")));
}

TEST_F(LaneRowsTest, NameBothLayouts) {
  EXPECT_THAT(LaneRows<double>("T", dict_, "x", {3, 2}),
              StatusIs(kInvalidArgument,
                       HasSubstr("got float32[3, 2], want float64[3, 2]")));
  EXPECT_THAT(LaneRows<float>("T", dict_, "x", {3, 4}),
              StatusIs(kInvalidArgument,
                       HasSubstr("got float32[3, 2], want float32[3, 4]")));
}

TEST_F(LaneRowsTest, RefuseStridedLeaves) {
  RILL_ASSERT_OK_AND_ASSIGN(Tensor x, dict_.Find("x")->Slice(1, 0, 1));
  RILL_ASSERT_OK(dict_.Set("x", std::move(x)));
  EXPECT_THAT(LaneRows<float>("T", dict_, "x", {3, 1}),
              StatusIs(kInvalidArgument, HasSubstr("got strided")));
}

TEST(LaneFlagsTest, SetKeepsDoneConsistent) {
  TensorDict dict({4});
  for (const char* key : {"done", "terminated", "truncated"}) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor flag, Tensor::Zeros(DType::kBool, {4, 1}));
    RILL_ASSERT_OK(dict.Set(key, std::move(flag)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(LaneFlags flags, FindLaneFlags("T", dict, 4));
  flags.Set(1, /*is_terminated=*/true, /*is_truncated=*/false);
  flags.Set(2, /*is_terminated=*/false, /*is_truncated=*/true);
  flags.Set(3, /*is_terminated=*/true, /*is_truncated=*/true);
  EXPECT_THAT(flags.done, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(flags.terminated, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(flags.truncated, ElementsAre(0, 0, 1, 1));
}

TEST(LaneMaskTest, HasOneEntryALane) {
  RILL_EXPECT_OK(CheckLaneMask("T", {1, 0}, 2));
  EXPECT_THAT(CheckLaneMask("T", {1, 0, 1}, 2),
              StatusIs(kInvalidArgument, HasSubstr("3 entries")));
}

}  // namespace
}  // namespace rill
