// SPDX-License-Identifier: Apache-2.0
// LazyStack of members of different batch shapes: episodes of different
// lengths.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// One of batch shape [steps]: obs [steps, 2], next/done [steps, 1], task.
TensorDict Steps(int64_t steps, float first = 0) {
  TensorDict dict({steps});
  const Tensor obs = Iota<float>({steps, 2});
  for (int64_t i = 0; i < steps * 2; ++i) obs.data<float>()[i] += first;
  RILL_EXPECT_OK(dict.Set("obs", obs));
  const Tensor done = *Tensor::Zeros(DType::kBool, {steps, 1});
  if (steps > 0) done.data<bool>()[steps - 1] = true;
  RILL_EXPECT_OK(dict.Set("next/done", done));
  return dict;
}

// Episodes of 3, 1 and 4 steps.
LazyStack Uneven(int stack_dim = 0) {
  return *LazyStack::Create({Steps(3), Steps(1, 10), Steps(4, 20)}, stack_dim);
}

TEST(UnevenLazyStackTest, D4_BatchShapeIsRaggedWhereMembersDiffer) {
  EXPECT_THAT(Uneven().batch_shape().sizes(), ElementsAre(3, -1));
  EXPECT_THAT(Uneven(1).batch_shape().sizes(), ElementsAre(-1, 3));
  EXPECT_THAT(
      LazyStack::Create({TensorDict({3, 2, 5}), TensorDict({1, 4, 5})}, 1)
          ->batch_shape()
          .sizes(),
      ElementsAre(-1, 2, -1, 5));
  EXPECT_THAT(Uneven().DebugString(), HasSubstr("LazyStack [3, -1] along 0"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last, Uneven().Member(2));
  RILL_EXPECT_OK(last.CheckEqual(Steps(4, 20)));
}

TEST(UnevenLazyStackTest, D4_PartsOfTheStackAreAsEvenAsTheirMembers) {
  EXPECT_THAT(Uneven().Slice(0, 0, 2)->batch_shape().sizes(),
              ElementsAre(2, -1));
  EXPECT_EQ(Uneven().Slice(0, 1, 2)->batch_shape(), Shape({1, 1}));
  EXPECT_EQ(Uneven().Slice(0, 3, 3)->batch_shape(), Shape({0, 0}));
  EXPECT_EQ(Uneven().Gather({2, 2})->batch_shape(), Shape({2, 4}));
  EXPECT_THAT(Uneven().Unsqueeze(0)->batch_shape().sizes(),
              ElementsAre(1, 3, -1));
}

TEST(UnevenLazyStackTest, D4_RaggedDimensionIsCutWhereAllMembersReach) {
  EXPECT_EQ(Uneven().Slice(1, 0, 1)->batch_shape(), Shape({3, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack first, Uneven().SelectDim(1, 0));
  EXPECT_EQ(first.batch_shape(), Shape({3}));
  EXPECT_THAT(first.Get("obs"),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 10, 11, 20, 21)));
  EXPECT_THAT(Uneven().Slice(1, 0, 2),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("[0, 2)"), HasSubstr("[0, 1)"),
                             HasSubstr("in member 1"))));
  EXPECT_THAT(Uneven().SelectDim(1, 1), IsOutOfRange("in member 1"));
  EXPECT_THAT(Uneven().Slice(1, 2, 1), IsOutOfRange());
}

TEST(UnevenLazyStackTest, D4_WhatNeedsOneSizeNamesBothSides) {
  LazyStack stack = Uneven();
  EXPECT_THAT(stack.Get("obs"),
              StatusIs(kInvalid, AllOf(HasSubstr("float32[1, 2] in member 1"),
                                       HasSubstr("want float32[3, 2]"),
                                       HasSubstr("ToPadded"))));
  for (const absl::Status& status :
       {stack.Set("x", Iota<float>({3, 4})),
        stack.SetInPlace("obs", Iota<float>({3, 4, 2}))}) {
    EXPECT_THAT(status, StatusIs(kInvalid, AllOf(HasSubstr("got [3, 4"),
                                                 HasSubstr("[3, -1], which"))));
  }
  EXPECT_THAT(
      stack.ToDense(),
      StatusIs(kInvalid, AllOf(HasSubstr("batch shape [3, -1]"),
                               HasSubstr("got [1]"), HasSubstr("want [3]"),
                               HasSubstr("use Member or ToPadded"))));
  EXPECT_THAT(Uneven(1).ToDense(),
              StatusIs(kInvalid, HasSubstr("batch shape [-1, 3]")));
}

TEST(UnevenLazyStackTest, InnerDictionariesAreStacksToo) {
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack next, Uneven().GetDict("next"));
  EXPECT_THAT(next.batch_shape().sizes(), ElementsAre(3, -1));
  LazyStack stack = Uneven();
  RILL_ASSERT_OK(stack.Set("task", NonTensor{"\"reach\""}));
  EXPECT_THAT(stack.GetNonTensorStack("task"), StatusIs(kInvalid));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict one, stack.Member(1));
  EXPECT_EQ(one.GetNonTensor("task")->json, "\"reach\"");
}

TEST(UnevenLazyStackTest, CopiesAndComparisonsGoMemberByMember) {
  const LazyStack stack = Uneven();
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack clone, stack.Clone());
  RILL_EXPECT_OK(clone.CheckEqual(stack));
  EXPECT_EQ(clone.batch_shape(), stack.batch_shape());
  // The same shape to look at, other lengths.
  const LazyStack other =
      *LazyStack::Create({Steps(3), Steps(2, 10), Steps(4, 20)});
  EXPECT_EQ(other.batch_shape(), stack.batch_shape());
  EXPECT_THAT(other.CheckEqual(stack),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("got [2]"), HasSubstr("want [1]"))));
}

TEST(UnevenLazyStackTest, ToPaddedHasTheLargestSizesAndMasks) {
  LazyStack stack = Uneven();
  RILL_ASSERT_OK(stack.Set("task", NonTensor{"\"reach\""}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, stack.ToPadded(-1));
  EXPECT_EQ(padded.batch_shape(), Shape({3, 4}));
  EXPECT_THAT(padded,
              HasKeys("obs", "next/done", "mask/obs", "mask/next/done"));
  EXPECT_THAT(
      padded.Index(1)->Get("obs"),
      IsOkAndHolds(TensorElementsAre<float>(10, 11, -1, -1, -1, -1, -1, -1)));
  const Tensor mask = MakeTensor<bool>({true, true, true, false,    //
                                        true, false, false, false,  //
                                        true, true, true, true},
                                       {3, 4});
  EXPECT_THAT(padded.Get("mask/obs"), IsOkAndHolds(BitEqualTo(mask)));
  EXPECT_THAT(padded.Get("mask/next/done"), IsOkAndHolds(BitEqualTo(mask)));
  EXPECT_EQ(padded.GetNonTensor("task")->json, "\"reach\"");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict behind, Uneven(1).ToPadded());
  EXPECT_EQ(behind.batch_shape(), Shape({4, 3}));
  EXPECT_THAT(behind.Get("mask/obs"),
              IsOkAndHolds(BitEqualTo(*mask.Permute({1, 0}))));
}

// The stack of what each row of the padded one is, against it.
TEST(UnevenLazyStackTest, ToPaddedAgreesWithItsMembersForAnyShapes) {
  const Rng rng(0x9e37);
  for (int round = 0; round < 200; ++round) {
    uint32_t draw = 0;
    const auto below = [&](int64_t bound) {
      return rng.UniformInt(static_cast<uint64_t>(round), draw++, bound);
    };
    const int rank = static_cast<int>(1 + below(3));
    const int dim = static_cast<int>(below(rank + 1));
    std::vector<TensorDict> members;
    for (int64_t n = 1 + below(3); n > 0; --n) {
      Shape batch;
      for (int d = 0; d < rank; ++d) batch = batch.Concat({below(4)});
      TensorDict member(batch);
      RILL_ASSERT_OK(member.Set("a/x", Iota<float>(batch.Concat({2}))));
      members.push_back(std::move(member));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                              LazyStack::Create(members, dim));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict padded, stack.ToPadded(-1));
    for (int64_t i = 0; i < stack.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict row, padded.SelectDim(dim, i));
      const Shape& real = members[static_cast<size_t>(i)].batch_shape();
      for (int d = 0; d < rank; ++d) {
        RILL_ASSERT_OK_AND_ASSIGN(row, row.Slice(d, 0, real[d]));
      }
      EXPECT_THAT(row.Get("a/x"),
                  IsOkAndHolds(BitEqualTo(*members[i].Get("a/x"))));
      const Tensor* mask = row.Find("mask/a/x");
      if (mask == nullptr) continue;  // All alike.
      ASSERT_EQ(mask->shape(), real);
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor flat, mask->Contiguous());
      for (int64_t e = 0; e < flat.num_elements(); ++e) {
        EXPECT_TRUE(flat.data<bool>()[e]);
      }
    }
    const Tensor* mask = padded.Find("mask/a/x");
    if (mask == nullptr) continue;
    int64_t rows = 0, set = 0;
    for (const TensorDict& member : members) {
      rows += member.batch_shape().num_elements();
    }
    for (int64_t e = 0; e < mask->num_elements(); ++e) {
      set += mask->data<bool>()[e] ? 1 : 0;
    }
    EXPECT_EQ(set, rows);
  }
}

TEST(UnevenLazyStackTest, ToPaddedOfValuesIsNullWhereNoRowIs) {
  TensorDict one({1}), two({2});
  RILL_ASSERT_OK(one.Set("in/task", NonTensor{"\"a\""}));
  RILL_ASSERT_OK(
      two.Set("in/task", *NonTensorStack::Create({2}, {"\"b\"", "\"c\""})));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LazyStack::Create({one, two}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, stack.ToPadded());
  EXPECT_THAT(padded.GetNonTensorStack("in/task")->values(),
              ElementsAre("\"a\"", "null", "\"b\"", "\"c\""));
}

TEST(UnevenLazyStackTest, ToPaddedRefusesWhatHasNoPadding) {
  TensorDict with = Steps(2), without = Steps(1);
  RILL_ASSERT_OK(
      with.Set("in/rows", *LazyStack::Create({TensorDict(), TensorDict()})));
  RILL_ASSERT_OK(without.Set("in/rows", *LazyStack::Create({TensorDict()})));
  EXPECT_THAT(LazyStack::Create({with, without})->ToPadded(),
              StatusIs(kInvalid, AllOf(HasSubstr("entry \"in/rows\""),
                                       HasSubstr("got a lazy stack"))));
  EXPECT_THAT(LazyStack::Create({Steps(2), TensorDict({1})})->ToPadded(),
              StatusIs(kInvalid, HasSubstr("\"obs\"")));
  EXPECT_THAT(Uneven().ToPadded(0, "obs"),
              StatusIs(kInvalid, HasSubstr("mask_key: got \"obs\"")));
  TensorDict wide({1});
  RILL_ASSERT_OK(wide.Set("obs", Iota<float>({1, 2, 3})));
  RILL_ASSERT_OK(wide.Set("next/done", *Tensor::Zeros(DType::kBool, {1, 1})));
  EXPECT_THAT(LazyStack::Create({Steps(2), wide})->ToPadded(),
              StatusIs(kInvalid, HasSubstr("at key \"obs\"")));
}

// --- Uneven ones in a dictionary ---------------------------------------------

// step [3], data/episodes [3, -1].
TensorDict WithUneven() {
  TensorDict dict({3});
  RILL_EXPECT_OK(dict.Set("step", Iota<int64_t>({3})));
  RILL_EXPECT_OK(dict.Set("data/episodes", Uneven()));
  return dict;
}

TEST(UnevenLazyStackEntryTest, StandsWhereItsEvenDimensionsAreTheBatch) {
  const TensorDict dict = WithUneven();
  RILL_EXPECT_OK(dict.GetLazyStack("data/episodes")->CheckEqual(Uneven()));
  TensorDict other({3, 4});
  EXPECT_THAT(other.Set("episodes", Uneven()),
              StatusIs(kInvalid, AllOf(HasSubstr("got [3, -1]"),
                                       HasSubstr("batch shape [3, 4]"))));
  EXPECT_THAT(dict.Get("data/episodes/obs"), StatusIs(kInvalid));
}

TEST(UnevenLazyStackEntryTest, RowsAreMembers) {
  const TensorDict dict = WithUneven();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, dict.Index(2));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict episode,
                            row.GetDict("data/episodes"));
  RILL_EXPECT_OK(episode.CheckEqual(Steps(4, 20)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, dict.Gather({2, 0, 2}));
  EXPECT_THAT(rows.GetLazyStack("data/episodes")->batch_shape().sizes(),
              ElementsAre(3, -1));
  EXPECT_EQ(dict.Gather({2, 2})->GetLazyStack("data/episodes")->batch_shape(),
            Shape({2, 4}));
  EXPECT_EQ(dict.Slice(0, 1, 2)->GetLazyStack("data/episodes")->batch_shape(),
            Shape({1, 1}));
}

TEST(UnevenLazyStackEntryTest, CatAndStackGoMemberByMember) {
  const TensorDict dict = WithUneven();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict both, Cat({dict, dict}));
  EXPECT_THAT(both.GetLazyStack("data/episodes")->batch_shape().sizes(),
              ElementsAre(6, -1));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict stacked, Stack({dict, dict}));
  EXPECT_THAT(stacked.GetLazyStack("data/episodes")->batch_shape().sizes(),
              ElementsAre(2, 3, -1));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, stacked.Index(1));
  RILL_EXPECT_OK(again.CheckEqual(dict));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict turned, dict.Gather({2, 1, 0}));
  EXPECT_THAT(Stack({dict, turned}),
              StatusIs(kInvalid, HasSubstr("at key \"data/episodes\"")));
}

TEST(UnevenLazyStackEntryTest, ReshapeNamesTheShape) {
  EXPECT_THAT(WithUneven().Reshape({3, 1}),
              StatusIs(kInvalid, AllOf(HasSubstr("[3, -1]"),
                                       HasSubstr("at key \"data/episodes\""))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict clone, WithUneven().Clone());
  RILL_EXPECT_OK(clone.CheckEqual(WithUneven()));
  TensorDict into = *WithUneven().Clone();
  RILL_EXPECT_OK(into.CopyFrom(WithUneven()));
  RILL_EXPECT_OK(into.SetAt("data/episodes/obs", 1, Iota<float>({1, 2})));
  EXPECT_THAT(into.SetAt("data/episodes/obs", 1, Iota<float>({2, 2})),
              StatusIs(kInvalid));
}

}  // namespace
}  // namespace rill
