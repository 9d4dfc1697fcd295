// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/layout_difference.h"

#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {4})));
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  return spec;
}

TEST(LayoutDifferenceTest, NoneWhereOnlyOrderAndDomainsDiffer) {
  TensorDictSpec other;
  RILL_ASSERT_OK(other.Set("action", LeafSpec::Categorical(3)));
  RILL_ASSERT_OK(
      other.Set("observation", LeafSpec::Bounded(DType::kFloat32, {4}, -1, 1)));
  EXPECT_EQ(LayoutDifference(Spec(), other), "");
}

TEST(LayoutDifferenceTest, NamesTheLeafWithBothSides) {
  TensorDictSpec other = Spec();
  RILL_ASSERT_OK(
      other.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {5})));
  EXPECT_EQ(LayoutDifference(other, Spec()),
            "leaf \"observation\": got float32[5], want float32[4]");
  RILL_ASSERT_OK(
      other.Set("observation", LeafSpec::Unbounded(DType::kFloat64, {4})));
  EXPECT_EQ(LayoutDifference(other, Spec()),
            "leaf \"observation\": got float64[4], want float32[4]");
}

TEST(LayoutDifferenceTest, NamesLeavesOfOneSideOnly) {
  TensorDictSpec other = Spec();
  RILL_ASSERT_OK(
      other.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  EXPECT_EQ(LayoutDifference(other, Spec()),
            "leaf \"next/reward\": got float32[1], want none");
  EXPECT_EQ(LayoutDifference(Spec(), other),
            "leaf \"next/reward\": got none, want float32[1]");
}

TEST(LayoutDifferenceTest, CountsTheOthers) {
  TensorDictSpec other;
  RILL_ASSERT_OK(other.Set("obs", LeafSpec::Unbounded(DType::kFloat32, {4})));
  EXPECT_EQ(LayoutDifference(other, Spec()),
            "leaf \"observation\": got none, want float32[4], and 2 more "
            "leaves differ");
}

}  // namespace
}  // namespace rill
