// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/lazy_stack.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
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
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// An episode: id [], next/obs [steps, 2]; values count up from `first`.
TensorDict Episode(int64_t steps, float first = 0) {
  TensorDict dict;
  RILL_EXPECT_OK(
      dict.Set("id", MakeTensor<int64_t>({static_cast<int64_t>(first)}, {})));
  const Tensor obs = Iota<float>({steps, 2});
  for (int64_t i = 0; i < steps * 2; ++i) obs.data<float>()[i] += first;
  RILL_EXPECT_OK(dict.Set("next/obs", obs));
  return dict;
}

// Lengths 1, 3, 2.
LazyStack Episodes() {
  return *LazyStack::Create({Episode(1), Episode(3, 10), Episode(2, 20)});
}

absl::StatusOr<TensorDict> RunExample(const TensorDict& first,
                                      const TensorDict& second) {
  RILL_ASSIGN_OR_RETURN(auto episodes, LazyStack::Create({first, second}));
  RILL_ASSIGN_OR_RETURN(Tensor ids, episodes.Get("id"));  // stacked, [2]
  RILL_ASSIGN_OR_RETURN(TensorDict padded, episodes.ToPadded());
  EXPECT_THAT(ids, TensorElementsAre<int64_t>(0, 5));
  return padded;
}

TEST(LazyStackTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded,
                            RunExample(Episode(2), Episode(1, 5)));
  EXPECT_THAT(padded.Get("next/obs"),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 2, 3, 5, 6, 0, 0)));
}

TEST(LazyStackTest, CreateChecksMembers) {
  EXPECT_THAT(LazyStack::Create({}), StatusIs(kInvalid, HasSubstr("got 0")));
  EXPECT_THAT(LazyStack::Create({MakeSteps(2), TensorDict({3, 1})}),
              StatusIs(kInvalid, HasSubstr("batch shape of member 1: got "
                                           "[3, 1], want rank 1 as that of "
                                           "member 0, [2]")));
  EXPECT_THAT(LazyStack::Create({MakeSteps(2)}, 2),
              StatusIs(kInvalid, HasSubstr("got 2, want one in [0, 1]")));
  EXPECT_THAT(LazyStack::Create({MakeSteps(2)}, -1), StatusIs(kInvalid));
  EXPECT_THAT(LazyStack::Create({TensorDict({1, 1, 1, 1, 1, 1, 1, 1})}),
              StatusIs(kInvalid));
  RILL_ASSERT_OK_AND_ASSIGN(
      const LazyStack behind,
      LazyStack::Create({MakeSteps(2), MakeSteps(2), MakeSteps(2)}, 1));
  EXPECT_EQ(behind.batch_shape(), Shape({2, 3}));
  EXPECT_EQ(behind.stack_dim(), 1);
}

// D2: keys are those that all members have; a missing one is NOT_FOUND; reading
// a ragged leaf is an error; writes reach the members.
TEST(LazyStackTest, D2KeysAreTheIntersection) {
  TensorDict with = Episode(1);
  RILL_ASSERT_OK(with.Set("next/extra", Iota<float>({2})));
  RILL_ASSERT_OK(with.Set("note", Iota<float>({2})));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LazyStack::Create({with, Episode(3)}));
  EXPECT_THAT(stack.Keys(), ElementsAre("id", "next"));
  EXPECT_THAT(stack.LeafKeys(), ElementsAre("id", "next/obs"));
  EXPECT_TRUE(stack.Contains("next/obs"));
  EXPECT_FALSE(stack.Contains("next/extra"));
  EXPECT_THAT(
      stack.Get("note"),
      StatusIs(kNotFound, AllOf(HasSubstr("no key \"note\" in 1 of 2 members"),
                                HasSubstr("common ones are: \"id\", \"next\""),
                                HasSubstr("1 of them have it: use Member"))));
  EXPECT_THAT(stack.Get("x"), StatusIs(kNotFound, Not(HasSubstr("have it"))));
  EXPECT_THAT(stack.Get("next//x"), StatusIs(kInvalid));
}

TEST(LazyStackTest, D2RaggedLeafIsAnErrorOnGet) {
  EXPECT_THAT(
      Episodes().Get("next/obs"),
      StatusIs(kInvalid, AllOf(HasSubstr("got float32[3, 2] in member 1"),
                               HasSubstr("want float32[1, 2] as in member 0"),
                               HasSubstr("Member(i)"), HasSubstr("ToPadded"))));
  TensorDict other = Episode(1);
  RILL_ASSERT_OK(other.Set("id", MakeTensor<int32_t>({0}, {})));
  EXPECT_THAT(LazyStack::Create({Episode(1), other})->Get("id"),
              StatusIs(kInvalid, HasSubstr("got int32[] in member 1")));
}

TEST(LazyStackTest, D2WritesReachMembers) {
  const TensorDict first = Episode(1), second = Episode(3);
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack stack,
                            LazyStack::Create({first, second}));
  RILL_ASSERT_OK(stack.SetInPlace("id", MakeTensor<int64_t>({7, 8}, {2})));
  EXPECT_THAT(first.Get("id"), IsOkAndHolds(TensorElementsAre<int64_t>(7)));
  EXPECT_THAT(second.Get("id"), IsOkAndHolds(TensorElementsAre<int64_t>(8)));
  RILL_ASSERT_OK(stack.Set("next/new", Iota<float>({2, 3})));
  EXPECT_THAT(stack.Member(1)->Get("next/new"),
              IsOkAndHolds(TensorElementsAre<float>(3, 4, 5)));
  EXPECT_THAT(stack.Get("next/new"),
              IsOkAndHolds(BitEqualTo(Iota<float>({2, 3}))));
  stack.Member(1)->Find("next/new")->data<float>()[0] = 99;
  EXPECT_EQ(stack.Get("next/new")->data<float>()[3], 99);
}

TEST(LazyStackTest, RefusedWritesChangeNoMember) {
  TensorDict odd = Episode(3);
  RILL_ASSERT_OK(odd.Set("x", Iota<float>({2})));
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack stack,
                            LazyStack::Create({Episode(1), odd}));
  const std::string before = stack.DebugString();
  EXPECT_THAT(stack.Set("x", Iota<float>({3})),
              StatusIs(kInvalid, HasSubstr("starts with the batch shape [2]")));
  // Only member 1 has a tensor where the key wants a dictionary.
  EXPECT_THAT(stack.Set("x/y", Iota<float>({2})),
              StatusIs(kInvalid, HasSubstr("in member 1")));
  EXPECT_THAT(
      stack.SetInPlace("next/obs", MakeTensor<float>({5, 5, 5, 5}, {2, 1, 2})),
      StatusIs(kInvalid, HasSubstr("of member 1")));
  EXPECT_THAT(stack.SetInPlace("x", Iota<float>({2})), IsNotFound());
  EXPECT_THAT(stack.SetInPlace("next", Iota<float>({2})), StatusIs(kInvalid));
  EXPECT_THAT(stack.Delete("x"), IsNotFound());
  stack.Lock();
  EXPECT_THAT(stack.Set("y", Iota<float>({2})), IsFailedPrecondition());
  EXPECT_THAT(stack.Delete("id"), IsFailedPrecondition());
  RILL_EXPECT_OK(stack.SetInPlace("id", *stack.Get("id")));
  stack.Unlock();
  EXPECT_EQ(stack.DebugString(), before);
  RILL_ASSERT_OK(stack.Delete("next/obs"));
  EXPECT_THAT(stack.LeafKeys(), ElementsAre("id"));
}

TEST(LazyStackTest, ACopyHasItsOwnStructure) {
  LazyStack a = Episodes();
  a.Lock();
  LazyStack b = a;
  EXPECT_TRUE(b.is_locked());
  b.Unlock();
  RILL_ASSERT_OK(b.Set("new", Iota<float>({3})));
  EXPECT_FALSE(a.Contains("new"));
}

TEST(LazyStackTest, ShapeOperationsTakeMembers) {
  const LazyStack stack = Episodes();
  EXPECT_THAT(stack.Member(1), IsOkAndHolds(BitEqualTo(Episode(3, 10))));
  EXPECT_THAT(stack.Member(3), IsOutOfRange());
  EXPECT_THAT(stack.SelectDim(0, 1),
              StatusIs(kInvalid, HasSubstr("use Member")));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack two, stack.Slice(0, 1, 3));
  EXPECT_EQ(two.size(), 2);
  EXPECT_THAT(two.Member(0), IsOkAndHolds(BitEqualTo(Episode(3, 10))));
  EXPECT_EQ(two.members()[0].Find("id")->raw_data(),
            stack.members()[1].Find("id")->raw_data());
  EXPECT_THAT(stack.Slice(0, 2, 4), IsOutOfRange());
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack rows, stack.Gather({2, 2, 0}));
  EXPECT_THAT(rows.Get("id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(20, 20, 0)));
  EXPECT_THAT(stack.Gather({3}), IsOutOfRange());
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack raised, stack.Unsqueeze(0));
  EXPECT_EQ(raised.batch_shape(), Shape({1, 3}));
  EXPECT_EQ(raised.stack_dim(), 1);
  EXPECT_EQ(stack.Unsqueeze(1)->batch_shape(), Shape({3, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack none, stack.Slice(0, 1, 1));
  EXPECT_EQ(none.batch_shape(), Shape({0}));
  EXPECT_EQ(none.Unsqueeze(0)->batch_shape(), Shape({1, 0}));
  EXPECT_TRUE(none.Keys().empty());
  EXPECT_THAT(none.ToDense(), IsOkAndHolds(BitEqualTo(TensorDict({0}))));
}

TEST(LazyStackTest, NestedAndNonTensorValues) {
  LazyStack stack = Episodes();
  RILL_ASSERT_OK(stack.Set("all", NonTensor{"1"}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack next, stack.GetDict("next"));
  EXPECT_THAT(next.Keys(), ElementsAre("obs"));
  EXPECT_EQ(stack.GetNonTensorStack("all")->values(),
            std::vector<std::string>(3, "1"));
  EXPECT_THAT(stack.GetDict("id"), StatusIs(kInvalid));
  EXPECT_THAT(stack.GetDict("x"), IsNotFound());
}

TEST(LazyStackTest, ToDenseNamesWhatDiffers) {
  TensorDict odd = Episode(3);
  RILL_ASSERT_OK(odd.Set("x", Iota<float>({2})));
  EXPECT_THAT(
      LazyStack::Create({Episode(1), odd})->ToDense(),
      StatusIs(kInvalid, AllOf(HasSubstr("ragged leaves: \"next/obs\";"),
                               HasSubstr("only some members: \"x\";"),
                               HasSubstr("ToPadded"))));
  const std::vector<TensorDict> even = {MakeSteps(2), MakeSteps(2, 5)};
  for (int dim = 0; dim < 2; ++dim) {
    EXPECT_THAT(LazyStack::Create(even, dim)->ToDense(),
                IsOkAndHolds(BitEqualTo(*Stack(even, dim))));
  }
}

TEST(LazyStackTest, ToPaddedPadsRaggedLeavesOnly) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, Episodes().ToPadded(-1));
  EXPECT_EQ(padded.batch_shape(), Shape({3}));
  EXPECT_THAT(padded, HasKeys("id", "next/obs", "mask/next/obs"));
  EXPECT_THAT(padded.Get("next/obs"),
              IsOkAndHolds(TensorIs(DType::kFloat32, {3, 3, 2})));
  EXPECT_THAT(padded.Index(0)->Get("next/obs"),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, -1, -1, -1, -1)));
  EXPECT_THAT(
      padded.Get("mask/next/obs"),
      IsOkAndHolds(BitEqualTo(MakeTensor<bool>(
          {true, false, false, true, true, true, true, true, false}, {3, 3}))));
  EXPECT_FALSE(LazyStack::Create({Episode(1), Episode(1)})
                   ->ToPadded()
                   ->Contains("mask"));
  EXPECT_THAT(Episodes().ToPadded(0, "id"),
              StatusIs(kInvalid, HasSubstr("mask_key: got \"id\"")));
  TensorDict odd = Episode(3);
  RILL_ASSERT_OK(odd.Set("x", Iota<float>({2})));
  EXPECT_THAT(LazyStack::Create({Episode(1), odd})->ToPadded(),
              StatusIs(kInvalid, HasSubstr("got \"x\" in only some members")));
  TensorDict flat = Episode(3);
  RILL_ASSERT_OK(flat.Set("next/obs", Iota<float>({6})));
  EXPECT_THAT(LazyStack::Create({Episode(1), flat})->ToPadded(),
              StatusIs(kInvalid, HasSubstr("at key \"next/obs\"")));
}

TEST(LazyStackTest, CopiesAndMoves) {
  FakeBackend::Install({});
  const LazyStack stack = Episodes();
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack clone, stack.Clone());
  RILL_EXPECT_OK(clone.CheckEqual(stack));
  clone.members()[1].Find("next/obs")->data<float>()[3] = -1;
  EXPECT_THAT(clone.CheckEqual(stack),
              IsFailedPrecondition("\"members/[1]/next/obs\" differs first at "
                                   "[1, 1]: got -1, want 13"));
  RILL_EXPECT_OK(clone.CheckClose(stack, 14, 0));
  EXPECT_THAT(clone.CheckClose(stack, -1, 0), StatusIs(kInvalid));
  EXPECT_FALSE(stack.CheckEqual(*stack.Slice(0, 0, 2)).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack moved, stack.To(Device::Fake(0)));
  EXPECT_EQ(moved.members()[2].Find("id")->device(), Device::Fake(0));
  RILL_EXPECT_OK(moved.To(Device::Cpu())->CheckEqual(stack));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack pinned, stack.Pin(Device::Fake(0)));
  EXPECT_TRUE(pinned.members()[0].is_pinned());
}

// --- In a dictionary ---------------------------------------------------------

TensorDict WithEpisodes() {
  TensorDict dict({3});
  RILL_EXPECT_OK(dict.Set("step", Iota<int64_t>({3})));
  RILL_EXPECT_OK(dict.Set("deep/rows", Episodes()));
  return dict;
}

TEST(LazyStackEntryTest, StandsInADictionary) {
  TensorDict dict = WithEpisodes();
  EXPECT_EQ(dict.Kind("deep/rows"), EntryKind::kLazyStack);
  RILL_EXPECT_OK(dict.GetLazyStack("deep/rows")->CheckEqual(Episodes()));
  EXPECT_THAT(dict.GetLazyStack("step"), StatusIs(kInvalid));
  EXPECT_THAT(dict.Get("deep/rows"),
              StatusIs(kInvalid, HasSubstr("a lazy stack, want a tensor")));
  EXPECT_THAT(dict, HasKeys("step"));
  TensorDict other({2});
  EXPECT_THAT(
      other.Set("rows", Episodes()),
      StatusIs(kInvalid, HasSubstr("batch shape of \"rows\": got [3]")));
  EXPECT_THAT(dict.DebugString(), HasSubstr("LazyStack [3] along 0"));
  EXPECT_THAT(dict.Clone(), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_EQ(dict.size_bytes(), 3 * 8 + 3 * 8 + 6 * 8);
}

TEST(LazyStackEntryTest, KeysLeadInside) {
  TensorDict dict = WithEpisodes();
  EXPECT_TRUE(dict.Contains("deep/rows/next/obs"));
  EXPECT_FALSE(dict.Contains("deep/rows/x"));
  EXPECT_THAT(dict.Get("deep/rows/id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 10, 20)));
  EXPECT_THAT(dict.Get("deep/rows/next/obs"),
              StatusIs(kInvalid, HasSubstr("ragged")));
  RILL_ASSERT_OK(dict.Set("deep/rows/new", Iota<float>({3})));
  EXPECT_THAT(dict.GetLazyStack("deep/rows")->Member(2)->Get("new"),
              IsOkAndHolds(TensorElementsAre<float>(2)));
  EXPECT_THAT(dict.Set("deep/rows/new", Iota<float>({2})),
              StatusIs(kInvalid, HasSubstr("\"deep/rows/new\"")));
  RILL_ASSERT_OK(dict.Delete("deep/rows/new"));
  EXPECT_FALSE(dict.Contains("deep/rows/new"));
  EXPECT_THAT(dict.Delete("deep/rows/new"), IsNotFound());
  dict.Lock();
  EXPECT_THAT(dict.Set("deep/rows/new", Iota<float>({3})),
              IsFailedPrecondition());
}

TEST(LazyStackEntryTest, RowsAreMembers) {
  const TensorDict dict = WithEpisodes();
  EXPECT_THAT(dict.Index(1)->GetDict("deep/rows"),
              IsOkAndHolds(BitEqualTo(Episode(3, 10))));
  EXPECT_EQ(dict.Slice(0, 0, 2)->GetLazyStack("deep/rows")->size(), 2);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict rows, dict.Gather({2, 0, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack chosen,
                            rows.GetLazyStack("deep/rows"));
  EXPECT_THAT(chosen.Get("id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(20, 0, 20)));
  // Gather copies: neither the source nor another row is reached.
  chosen.members()[0].Find("id")->data<int64_t>()[0] = 1;
  EXPECT_THAT(chosen.Get("id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(1, 0, 20)));
  EXPECT_THAT(dict.Get("deep/rows/id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 10, 20)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict twice, Cat({dict, dict}));
  RILL_ASSERT_OK(twice.SetAt("deep/rows/id", 3, MakeTensor<int64_t>({9}, {})));
  EXPECT_THAT(twice.Get("deep/rows/id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 10, 20, 9, 10, 20)));
  EXPECT_THAT(dict.Get("deep/rows/id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 10, 20)));
  RILL_ASSERT_OK(dict.GatherInto({1, 1, 1}, &rows));
  EXPECT_THAT(rows.Get("deep/rows/id"),
              IsOkAndHolds(TensorElementsAre<int64_t>(10, 10, 10)));
}

TEST(LazyStackEntryTest, RaggedRowsCannotBeReshaped) {
  const TensorDict dict = WithEpisodes();
  EXPECT_THAT(dict.Reshape({3, 1}),
              StatusIs(kInvalid, AllOf(HasSubstr("\"next/obs\""),
                                       HasSubstr("at key \"deep/rows\""))));
  EXPECT_THAT(dict.Unsqueeze(0)->GetLazyStack("deep/rows")->batch_shape(),
              Shape({1, 3}));
  const auto same = [](absl::string_view, const Tensor& leaf) {
    return absl::StatusOr<Tensor>(leaf);
  };
  EXPECT_THAT(dict.Apply(same), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(WithEpisodes().Index(0)->Apply(same).status(), IsOk());
}

TEST(LazyStackEntryTest, MovesBetweenDevices) {
  FakeBackend::Install({});
  const TensorDict dict = WithEpisodes();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict moved, dict.To(Device::Fake(0)));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack rows,
                            moved.GetLazyStack("deep/rows"));
  EXPECT_EQ(rows.members()[0].device(), Device::Fake(0));
  EXPECT_EQ(rows.members()[0].Find("id")->device(), Device::Fake(0));
  EXPECT_THAT(moved.Set("more", Episodes()),
              StatusIs(kInvalid, HasSubstr("device of \"more\"")));
  EXPECT_THAT(moved.To(Device::Cpu()), IsOkAndHolds(BitEqualTo(dict)));
  moved.ClearDevice();
  EXPECT_FALSE(
      moved.GetLazyStack("deep/rows")->members()[0].device().has_value());
}

// A lazy stack beside the same rows as a dictionary: every operation does the
// same to both.
TEST(LazyStackEntryTest, RandomOperationsAgreeWithTheDenseRows) {
  const Rng rng(3);
  for (uint32_t round = 0; round < 300; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    const auto stack_dim = static_cast<int>(pick(3));
    const int outer = static_cast<int>(pick(3));
    std::vector<TensorDict> members;
    for (int64_t i = 0; i < 3; ++i) {
      TensorDict member = *MakeSteps(6, i * 10).Reshape({2, 3});
      RILL_ASSERT_OK(member.Set("note", NonTensor{absl::StrCat(i)}));
      members.push_back(std::move(member));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                              LazyStack::Create(members, stack_dim));
    TensorDict dict(stack.batch_shape().ToShape()->Prefix(outer));
    RILL_ASSERT_OK(dict.Set("lazy", stack));
    RILL_ASSERT_OK(dict.Set("dense", *stack.ToDense()));
    std::string did = absl::StrCat("along ", stack_dim, " in ", outer, ":");
    for (int step = 0; step < 5; ++step) {
      const Shape batch = dict.batch_shape();
      const int rank = batch.rank();
      const auto dim = static_cast<int>(pick(rank + 1));
      const bool is_dim = dim < rank;
      const int64_t op = pick(8);
      absl::StrAppend(&did, " ", op, "@", dim, batch.ToString());
      absl::StatusOr<TensorDict> next = dict;
      if (op == 0 && is_dim && batch[dim] > 0) {
        next = dict.SelectDim(dim, pick(batch[dim]));
      } else if (op == 1 && is_dim && batch[dim] > 0) {
        const int64_t begin = pick(batch[dim]);
        next = dict.Slice(dim, begin, begin + 1 + pick(batch[dim] - begin));
      } else if (op == 2 && rank > 0) {
        next = dict.Gather({pick(batch[0]), pick(batch[0])});
      } else if (op == 3 && rank < 4) {
        next = dict.Unsqueeze(dim);
      } else if (op == 4 && rank < 4) {
        next = Stack({dict, dict}, dim);
      } else if (op == 5 && is_dim) {
        next = Cat({dict, *dict.Slice(dim, 0, 1)}, dim);
      } else if (op == 6 && pick(3) == 0) {
        next = dict.Reshape({1, batch.num_elements()});
      } else if (op == 7 && rank == 2 && pick(3) == 0) {
        next = dict.MapShape({batch[1], batch[0]}, [](const Tensor& leaf) {
          std::vector<int> dims = {1, 0};
          for (int d = 2; d < leaf.rank(); ++d) dims.push_back(d);
          return leaf.Permute(dims);
        });
      }
      // Stack and Cat of lazy stacks want the same sizes of all.
      RILL_ASSERT_OK(next.status()) << did;
      dict = *std::move(next);
      TensorDict lazy;
      if (dict.Kind("lazy") == EntryKind::kDict) {
        lazy = *dict.GetDict("lazy");
      } else {
        RILL_ASSERT_OK_AND_ASSIGN(lazy, dict.GetLazyStack("lazy")->ToDense());
      }
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dense, dict.GetDict("dense"));
      ASSERT_EQ(lazy.LeafKeys(), dense.LeafKeys());
      // Equal values may stand as one or as a stack of them.
      ASSERT_EQ(*lazy.GetNonTensorStack("note"),
                *dense.GetNonTensorStack("note"))
          << did;
      RILL_ASSERT_OK(lazy.Delete("note"));
      ASSERT_THAT(*dense.Exclude({"note"}), BitEqualTo(lazy)) << did;
    }
  }
}

}  // namespace
}  // namespace rill
