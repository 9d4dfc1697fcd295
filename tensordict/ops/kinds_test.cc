// SPDX-License-Identifier: Apache-2.0
// Operations on entries that are neither tensors nor dictionaries.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ops/apply.h"
#include "rill/tensordict/ops/arithmetic.h"
#include "rill/tensordict/ops/index.h"
#include "rill/tensordict/ops/keys.h"
#include "rill/tensordict/ops/reductions.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three rows: a tensor "x", texts "who" (one a row), a lazy stack "n/lazy" of
// members with "y" of 1, 2 and 3 elements, and a ragged tensor "rows".
TensorDict Make(int32_t first = 0) {
  std::vector<TensorDict> members;
  std::vector<Tensor> rows;
  for (int64_t i = 1; i <= 3; ++i) {
    Tensor y = Iota<int32_t>({i});
    y.data<int32_t>()[0] = first;
    members.emplace_back(Shape());
    EXPECT_TRUE(members.back().Set("y", y).ok());
    rows.push_back(*y.Clone());
  }
  TensorDict dict({3});
  EXPECT_TRUE(dict.Set("x", *Add(Iota<int32_t>({3}), first)).ok());
  EXPECT_TRUE(
      dict.Set("who", *NonTensorStack::Create({3}, {"\"a\"", "\"b\"", "\"c\""}))
          .ok());
  EXPECT_TRUE(dict.Set("n/lazy", *LazyStack::Create(members)).ok());
  EXPECT_TRUE(dict.Set("rows", *RaggedTensor::FromRows(rows)).ok());
  return dict;
}

std::vector<std::string> Who(const TensorDict& dict) {
  return dict.GetNonTensorStack("who")->values();
}

TEST(KindsTest, BasicIndicesTakePartsOfEveryKind) {
  const TensorDict dict = Make();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict part, At(dict, {Range{1}}));
  EXPECT_THAT(Who(part), ElementsAre("\"b\"", "\"c\""));
  EXPECT_EQ(part.GetLazyStack("n/lazy")->size(), 2);
  EXPECT_EQ(part.GetRagged("rows")->num_rows(), 2);
  RILL_ASSERT_OK_AND_ASSIGN(part, At(dict, {-1}));
  EXPECT_EQ(part.GetNonTensor("who")->json, "\"c\"");
  EXPECT_EQ(part.Find("rows")->shape(), Shape({3}));
  EXPECT_EQ(part.Find("n/lazy/y")->shape(), Shape({3}));
  RILL_ASSERT_OK_AND_ASSIGN(part, At(dict, {std::vector<int64_t>{2, 0, 2}}));
  EXPECT_THAT(Who(part), ElementsAre("\"c\"", "\"a\"", "\"c\""));
  EXPECT_EQ(part.GetRagged("rows")->Row(0)->shape(), Shape({3}));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> rows, Unbind(dict));
  EXPECT_EQ(rows[1].GetNonTensor("who")->json, "\"b\"");
  EXPECT_EQ(Split(dict, 2)->at(1).GetLazyStack("n/lazy")->size(), 1);
}

TEST(KindsTest, TextsFollowTheirRows) {
  const TensorDict dict = *Make().Exclude({"n", "rows"});
  EXPECT_THAT(Who(*Flip(dict, {0})), ElementsAre("\"c\"", "\"b\"", "\"a\""));
  EXPECT_THAT(Who(*Roll(dict, {1}, {0})),
              ElementsAre("\"c\"", "\"a\"", "\"b\""));
  EXPECT_THAT(Who(*RepeatInterleave(dict, {2, 0, 1})),
              ElementsAre("\"a\"", "\"a\"", "\"c\""));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, Pad(dict, {{1, 0}}, 7));
  EXPECT_THAT(Who(padded), ElementsAre("null", "\"a\"", "\"b\"", "\"c\""));
  EXPECT_THAT(*padded.Find("x"), TensorElementsAre<int32_t>(7, 0, 1, 2));
  EXPECT_THAT(padded.Keys(), ElementsAre("x", "who"));
  TensorDict other = dict;
  RILL_ASSERT_OK(other.Set(
      "who", *NonTensorStack::Create({3}, {"\"d\"", "\"e\"", "\"f\""})));
  EXPECT_THAT(
      Who(*Where(MakeTensor<bool>({true, false, true}, {3}), dict, other)),
      ElementsAre("\"a\"", "\"e\"", "\"c\""));
}

TEST(KindsTest, ArithmeticReachesMembersAndRaggedRows) {
  const TensorDict a = Make(10);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict sum, Add(a, Make(5)));
  EXPECT_THAT(*sum.GetLazyStack("n/lazy")->Member(2)->Find("y"),
              TensorElementsAre<int32_t>(15, 2, 4));
  EXPECT_THAT(*sum.GetRagged("rows")->Row(1),
              TensorElementsAre<int32_t>(15, 2));
  EXPECT_THAT(Who(sum), ElementsAre("\"a\"", "\"b\"", "\"c\""));
  RILL_ASSERT_OK_AND_ASSIGN(sum, Neg(a));
  EXPECT_THAT(*sum.GetRagged("rows")->Row(0), TensorElementsAre<int32_t>(-10));

  RILL_ASSERT_OK(AddInPlace(a, 1));
  RILL_ASSERT_OK(AddInPlace(a, a));
  EXPECT_THAT(*a.GetLazyStack("n/lazy")->Member(0)->Find("y"),
              TensorElementsAre<int32_t>(22));
  EXPECT_THAT(*a.GetRagged("rows")->Row(2),
              TensorElementsAre<int32_t>(22, 4, 6));

  TensorDict fewer = *Make().Exclude({"rows"});
  EXPECT_THAT(Add(a, fewer),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("rows")));
  EXPECT_THAT(Add(fewer, a),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("rows")));
  fewer = Make();
  RILL_ASSERT_OK(fewer.Set(
      "n/lazy",
      *LazyStack::Create({TensorDict(), TensorDict(), TensorDict()})));
  EXPECT_THAT(AddInPlace(a, fewer),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("n/lazy/y")));
  fewer = Make();
  RILL_ASSERT_OK(
      fewer.Set("rows", *fewer.GetRagged("rows")->Gather({2, 1, 0})));
  EXPECT_THAT(Add(a, fewer), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("\"rows\"")));
}

TEST(KindsTest, ApplyReachesMembersAndRaggedRows) {
  const TensorDict a = Make(3);
  const TensorDict b = Make(1);
  std::vector<std::string> keys;
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict sum,
      NamedApply(a,
                 [&](absl::string_view key, absl::Span<const Tensor> x) {
                   keys.emplace_back(key);
                   return Add(x[0], x[1]);
                 },
                 {.others = {&b}}));
  EXPECT_THAT(keys,
              ElementsAre("x", "n/lazy/y", "n/lazy/y", "n/lazy/y", "rows"));
  EXPECT_THAT(sum, BitEqualTo(*Add(a, b)));
  EXPECT_THAT(*sum.GetRagged("rows")->Row(0), TensorElementsAre<int32_t>(4));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict dropped,
      NamedApply(a,
                 [](absl::string_view key,
                    absl::Span<const Tensor> x) -> absl::StatusOr<Tensor> {
                   return key == "x" ? x[0] : Tensor();
                 }));
  EXPECT_THAT(dropped.Keys(), ElementsAre("x", "who", "n"));
  EXPECT_THAT(dropped.GetLazyStack("n/lazy")->Keys(), ElementsAre());
  EXPECT_THAT(Apply(a, [](absl::Span<const Tensor> x) { return x[0]; },
                    {.batch_shape = Shape{3, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_ASSERT_OK(
      ApplyInPlace(a, [](absl::Span<const Tensor> x) { return Neg(x[0]); }));
  EXPECT_THAT(*a.GetRagged("rows")->Row(1), TensorElementsAre<int32_t>(-3, -1));
}

TEST(KindsTest, KeyOperationsKeepEveryKind) {
  const TensorDict dict = Make();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, FlattenKeys(dict));
  EXPECT_THAT(flat.Keys(), ElementsAre("x", "who", "n.lazy", "rows"));
  EXPECT_EQ(flat.Kind("n.lazy"), EntryKind::kLazyStack);
  EXPECT_THAT(UnflattenKeys(flat), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(SortKeys(dict)->Keys(), ElementsAre("n", "rows", "who", "x"));
  EXPECT_THAT(FilterEmpty(dict)->Keys(), ElementsAre("x", "who", "n", "rows"));
  EXPECT_THAT(FilterNonTensor(dict)->Keys(), ElementsAre("x", "n", "rows"));
  EXPECT_TRUE(FilterNonTensor(dict)->Contains("n/lazy"));
}

TEST(KindsTest, WhatHasNoMeaningIsRefusedByKey) {
  const TensorDict dict = Make();
  const TensorDict texts = *dict.Exclude({"n", "rows"});
  const TensorDict lazy = *dict.Exclude({"who", "rows"});
  const TensorDict before = *dict.Clone();
  const auto refused = [](const absl::Status& status, const std::string& key) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("\"" + key + "\"")));
  };
  refused(Sum(texts).status(), "who");
  refused(CumSum(texts, 0).status(), "who");
  refused(Max(lazy, {.over = ReduceOver::kLeaf}).status(), "n/lazy");
  refused(SetAt(dict, {0}, *At(dict, {1})), "who");
  refused(SetAt(lazy, {0}, *At(lazy, {1})), "n/lazy");
  const Tensor mask = MakeTensor<bool>({true, false, true}, {3});
  refused(Where(mask, lazy, lazy).status(), "n/lazy");
  EXPECT_THAT(dict, BitEqualTo(before));
}

}  // namespace
}  // namespace rill::ops
