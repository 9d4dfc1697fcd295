// SPDX-License-Identifier: Apache-2.0
// LeafSpecs of another shape: a tensor is a member of the result if and only if
// the tensor of the old shape was one before.
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/test_specs.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int kSpecs = 300;

// Specs with a dimension to work on.
std::vector<LeafSpec> SpecsWithLead() {
  std::vector<LeafSpec> specs;
  for (int i = 0; specs.size() < kSpecs; ++i) {
    const LeafSpec spec = RandomLeafSpec(Rng(41), i);
    if (tensor_internal::LeadOf(spec).rank() > 0 &&
        spec.dtype <= DType::kFloat64) {
      specs.push_back(spec);
    }
  }
  return specs;
}

TEST(LeafSpecShapeTest, StackOfRowsIsTheWhole) {
  for (const LeafSpec& spec : SpecsWithLead()) {
    std::vector<LeafSpec> rows;
    for (int64_t i = 0; i < spec.shape[0]; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(LeafSpec row, spec.Index(i));
      rows.push_back(row);
    }
    EXPECT_THAT(LeafSpec::Stack(rows), IsOkAndHolds(spec)) << spec.ToString();
  }
}

TEST(LeafSpecShapeTest, RowsOfMembersAreMembersOfTheRows) {
  for (const LeafSpec& spec : SpecsWithLead()) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor member, spec.Random({}, Rng(42), 0));
    // Another tensor, which may be a member or not, but for the others' shape.
    const LeafSpec wider = spec.WithoutMask();
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor other, wider.Random({}, Rng(43), 0));
    for (const Tensor& t : {member, other}) {
      bool all = true;
      for (int64_t i = 0; i < spec.shape[0]; ++i) {
        all = all && spec.Index(i)->Contains(*t.Index(i));
      }
      EXPECT_EQ(spec.Contains(t), all) << spec.ToString();
    }
  }
}

TEST(LeafSpecShapeTest, ReshapeTakesUnsqueezeBack) {
  for (const LeafSpec& spec : SpecsWithLead()) {
    const int rank = tensor_internal::LeadOf(spec).rank();
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor member, spec.Random({}, Rng(44), 0));
    for (int dim = 0; dim <= rank; ++dim) {
      RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec wider, spec.Unsqueeze(dim));
      EXPECT_TRUE(wider.Contains(*member.Unsqueeze(dim))) << spec.ToString();
      EXPECT_THAT(wider.Reshape(spec.shape), IsOkAndHolds(spec));
    }
    EXPECT_THAT(spec.Unsqueeze(rank + 1), StatusIs(kInvalid));
  }
}

TEST(LeafSpecShapeTest, ReshapeTakesElementsAlong) {
  for (const LeafSpec& spec : SpecsWithLead()) {
    const Shape lead = tensor_internal::LeadOf(spec);
    const Shape flat =
        tensor_internal::ShapeWithLead(spec, {lead.num_elements()});
    RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec line, spec.Reshape(flat));
    EXPECT_EQ(line.shape, flat);
    EXPECT_THAT(line.Reshape(spec.shape), IsOkAndHolds(spec));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor other,
                              spec.WithoutMask().Random({}, Rng(45), 0));
    EXPECT_EQ(line.Contains(*other.Reshape(flat)), spec.Contains(other));
  }
}

TEST(LeafSpecShapeTest, ExpandRepeats) {
  for (const LeafSpec& spec : SpecsWithLead()) {
    const Shape to = Shape({4}).Concat(spec.shape);
    RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec four, spec.Expand(to));
    EXPECT_EQ(four.shape, to);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_THAT(four.Index(i), IsOkAndHolds(spec)) << spec.ToString();
    }
    RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec one, spec.Unsqueeze(0));
    EXPECT_THAT(one.Expand(to), IsOkAndHolds(four));
  }
}

TEST(LeafSpecShapeTest, MasksOfABatchKeepIt) {
  // Batch [2], lead [3]: row (b, l) allows all but option (b + l) % 4.
  Tensor mask = *Tensor::Empty(DType::kBool, {2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) {
    mask.data<bool>()[i] = i % 4 != (i / 12 + i / 4 % 3) % 4;
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec spec,
      LeafSpec::Categorical(4, DType::kInt64, {3}).WithMask(mask));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec row, spec.Index(1));
  EXPECT_THAT(*row.mask(), BitEqualTo(*mask.Select(1, 1)->Clone()));
  EXPECT_TRUE(row.Contains(MakeTensor<int64_t>({0, 0}, {2})));
  EXPECT_FALSE(row.Contains(MakeTensor<int64_t>({1, 0}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec grid, spec.Reshape({3, 1}));
  EXPECT_EQ(grid.mask()->shape(), Shape({2, 3, 1, 4}));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec many, spec.Expand({5, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor drawn, many.Random({2}, Rng(1), 0));
  for (int64_t i = 0; i < drawn.num_elements(); ++i) {
    EXPECT_NE(drawn.data<int64_t>()[i], (i / 15 + i % 3) % 4);
  }
  std::vector<LeafSpec> rows;
  for (int64_t i = 0; i < 3; ++i) rows.push_back(*spec.Index(i));
  EXPECT_THAT(LeafSpec::Stack(rows), IsOkAndHolds(spec));
}

TEST(LeafSpecShapeTest, StackJoinsBoundsAndMasks) {
  const LeafSpec a = LeafSpec::Bounded(DType::kInt32, {}, 0.2, 3.9);
  const LeafSpec b = LeafSpec::Bounded(DType::kInt32, {}, -1, 1e30);
  RILL_ASSERT_OK_AND_ASSIGN(
      const LeafSpec want,
      LeafSpec::Bounded(MakeTensor<int32_t>({1, -1}, {2}),
                        MakeTensor<int32_t>({3, INT32_MAX}, {2})));
  EXPECT_THAT(LeafSpec::Stack({a, b}), IsOkAndHolds(want));
  EXPECT_THAT(LeafSpec::Stack({a, a, a}),
              IsOkAndHolds(LeafSpec::Bounded(DType::kInt32, {3}, 0.2, 3.9)));
  const LeafSpec move = LeafSpec::OneHot(2);
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec left,
                            move.WithMask(MakeTensor<bool>({1, 0}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(const LeafSpec both, LeafSpec::Stack({move, left}));
  EXPECT_EQ(both.shape, Shape({2, 2}));
  EXPECT_THAT(*both.mask(), TensorElementsAre<bool>(1, 1, 1, 0));
  EXPECT_THAT(LeafSpec::Stack({move, LeafSpec::OneHot(3)}),
              StatusIs(kInvalid, HasSubstr("one-hot(3) beside")));
  EXPECT_THAT(LeafSpec::Stack({move, move}, 1), StatusIs(kInvalid));
  EXPECT_THAT(LeafSpec::Stack({move, move}, -1), StatusIs(kInvalid));
  EXPECT_THAT(LeafSpec::Stack({}), StatusIs(kInvalid));
}

TEST(LeafSpecShapeTest, NamesWhatDoesNotFit) {
  const LeafSpec spec = LeafSpec::OneHot(3, DType::kBool, {2});
  EXPECT_THAT(spec.Index(2), IsOutOfRange("got 2, want one in [0, 2)"));
  EXPECT_THAT(LeafSpec::OneHot(3).Index(0),
              StatusIs(kInvalid, HasSubstr("holds choices")));
  EXPECT_THAT(LeafSpec::Unbounded(DType::kFloat32, {}).Index(0),
              StatusIs(kInvalid));
  EXPECT_THAT(spec.Reshape({6}),
              StatusIs(kInvalid, HasSubstr("want a last size of 3")));
  EXPECT_THAT(spec.Reshape({3, 3}), StatusIs(kInvalid));
  EXPECT_THAT(spec.Expand({3, 3}), StatusIs(kInvalid));
  EXPECT_THAT(spec.Expand({3}), StatusIs(kInvalid));
  const LeafSpec deep =
      LeafSpec::Unbounded(DType::kFloat32, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(deep.Unsqueeze(0), StatusIs(kInvalid));
  EXPECT_THAT(LeafSpec::Stack({deep, deep}), StatusIs(kInvalid));
}

}  // namespace
}  // namespace rill
