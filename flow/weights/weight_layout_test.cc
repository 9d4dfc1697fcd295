// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/weights/weight_layout.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill::weights_internal {
namespace {

WeightLayout Layout() {
  WeightLayout layout{.batch_shape = {2}};
  RILL_EXPECT_OK(layout.spec.Set("0/weight",
                                 LeafSpec::Unbounded(DType::kFloat32, {3, 5})));
  RILL_EXPECT_OK(
      layout.spec.Set("steps", LeafSpec::Unbounded(DType::kInt64, {})));
  return layout;
}

TEST(WeightLayoutTest, WhatIsWrittenIsRead) {
  const WeightLayout layout = Layout();
  RILL_ASSERT_OK_AND_ASSIGN(const WeightLayout got,
                            WeightLayout::FromBytes(layout.ToBytes()));
  EXPECT_EQ(got.batch_shape, layout.batch_shape);
  EXPECT_EQ(got.spec, layout.spec);
  EXPECT_EQ(got.PackedBytes(), 128 + 64);  // 120 and 16 bytes, rounded up.
}

TEST(WeightLayoutTest, EveryCutAndEveryMoreIsDataLoss) {
  const std::string bytes = Layout().ToBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(WeightLayout::FromBytes(bytes.substr(0, size)), IsDataLoss())
        << size;
  }
  EXPECT_THAT(WeightLayout::FromBytes(bytes + "x"), IsDataLoss("more bytes"));
}

// A layout that is accepted has these bytes: a key may be any text.
TEST(WeightLayoutTest, NumbersThatCannotBeAreDataLoss) {
  const std::string bytes = Layout().ToBytes();
  int64_t refused = 0;
  for (size_t at = 0; at + sizeof(int64_t) <= bytes.size(); ++at) {
    for (const int64_t number : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
      std::string wrong = bytes;
      std::memcpy(wrong.data() + at, &number, sizeof(number));
      const auto layout = WeightLayout::FromBytes(wrong);
      if (layout.ok()) {
        EXPECT_EQ(layout->ToBytes(), wrong) << at;
      } else {
        EXPECT_TRUE(absl::IsDataLoss(layout.status())) << layout.status();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(WeightLayoutTest, TheLargestRanksAndBytesAreTaken) {
  const auto read = [](const Shape& batch, DType dtype, const Shape& leaf) {
    WeightLayout layout{.batch_shape = batch};
    RILL_EXPECT_OK(layout.spec.Set("w", LeafSpec::Unbounded(dtype, leaf)));
    return WeightLayout::FromBytes(layout.ToBytes()).status();
  };
  const Shape eight = {1, 1, 1, 1, 1, 1, 1, 1};
  RILL_EXPECT_OK(read({}, DType::kInt64, eight));
  RILL_EXPECT_OK(read(eight, DType::kInt64, {}));
  EXPECT_THAT(read({1}, DType::kInt64, eight), IsDataLoss("rank 9"));
  RILL_EXPECT_OK(read({}, DType::kUInt8, {WeightLayout::kMaxBytes}));
  EXPECT_THAT(read({}, DType::kUInt8, {WeightLayout::kMaxBytes + 1}),
              IsDataLoss("snapshots"));
}

TEST(WeightLayoutTest, AKeyTwiceIsDataLoss) {
  std::string bytes = Layout().ToBytes();
  const auto replace = [&](const std::string& from, const std::string& to) {
    bytes.replace(bytes.find(from), from.size(), to);
  };
  // As long as the other key, which comes first.
  WeightLayout layout = Layout();
  RILL_EXPECT_OK(
      layout.spec.Set("1/weight", LeafSpec::Unbounded(DType::kFloat32, {})));
  bytes = layout.ToBytes();
  replace("1/weight", "0/weight");
  EXPECT_THAT(WeightLayout::FromBytes(bytes), IsDataLoss("two leaves"));
  // A leaf is no dictionary.
  bytes = layout.ToBytes();
  replace("1/weight", "steps/w0");
  EXPECT_THAT(WeightLayout::FromBytes(bytes), IsDataLoss());
}

}  // namespace
}  // namespace rill::weights_internal
