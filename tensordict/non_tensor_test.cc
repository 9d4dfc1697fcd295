// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/non_tensor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
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

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

NonTensorStack Values(const Shape& shape,
                      const std::vector<std::string>& values) {
  return *NonTensorStack::Create(shape, values);
}

// A dictionary with one column of values.
TensorDict Column(const Shape& shape, const std::vector<std::string>& values) {
  TensorDict dict(shape);
  RILL_EXPECT_OK(dict.Set("note", Values(shape, values)));
  return dict;
}

std::vector<std::string> NotesOf(const TensorDict& dict,
                                 absl::string_view key = "note") {
  const absl::StatusOr<NonTensorStack> notes = dict.GetNonTensorStack(key);
  RILL_EXPECT_OK(notes.status());
  return notes.ok() ? notes->values() : std::vector<std::string>();
}

absl::StatusOr<NonTensor> RunExample() {
  RILL_ASSIGN_OR_RETURN(auto names,
                        NonTensorStack::Create({2}, {"\"left\"", "\"right\""}));
  RILL_ASSIGN_OR_RETURN(NonTensor second, names.At(1));  // "right"
  return second;
}

TEST(NonTensorStackTest, Example) {
  EXPECT_THAT(RunExample(), IsOkAndHolds(NonTensor{"\"right\""}));
}

TEST(NonTensorStackTest, HoldsValuesRowMajor) {
  const NonTensorStack stack = Values({2, 3}, {"1", "2", "1", "4", "5", "1"});
  EXPECT_EQ(stack.shape(), Shape({2, 3}));
  EXPECT_EQ(stack.size(), 6);
  EXPECT_THAT(stack.values(), ElementsAre("1", "2", "1", "4", "5", "1"));
  EXPECT_THAT(stack.At(3), IsOkAndHolds(NonTensor{"4"}));
  EXPECT_THAT(stack.At(6), IsOutOfRange("index 6 is outside [0, 6)"));
  EXPECT_THAT(stack.At(-1), IsOutOfRange());
  EXPECT_EQ(stack.DebugString(), "[2, 3] {1, 2, 1, 4, 5, 1}");
  EXPECT_THAT(NonTensorStack::Create({2}, {"1"}),
              StatusIs(kInvalid, HasSubstr("got 1, want 2 of shape [2]")));
  EXPECT_TRUE(Values({0}, {}).values().empty());
}

TEST(NonTensorStackTest, EqualByShapeAndValues) {
  const NonTensorStack a = Values({2}, {"1", "2"});
  EXPECT_EQ(a,
            *NonTensorStack::Cat({Values({1}, {"1"}), Values({1}, {"2"})}, 0));
  EXPECT_FALSE(a == Values({2}, {"2", "1"}));
  EXPECT_FALSE(a == Values({2, 1}, {"1", "2"}));
  EXPECT_EQ(*NonTensorStack::Filled({2}, {"7"}), Values({2}, {"7", "7"}));
}

TEST(NonTensorStackTest, MapIndexTakesOnlyIndices) {
  const NonTensorStack stack = Values({2}, {"1", "2"});
  EXPECT_THAT(stack.MapIndex([](const Tensor&) {
    return Tensor::Zeros(DType::kInt64, {3});
  }),
              IsOkAndHolds(Values({3}, {"null", "null", "null"})));
  EXPECT_THAT(stack.MapIndex([](const Tensor&) -> absl::StatusOr<Tensor> {
    return Iota<int64_t>({4});
  }),
              StatusIs(kInvalid, HasSubstr("got 3, want one that was there")));
  EXPECT_THAT(stack.MapIndex([](const Tensor&) -> absl::StatusOr<Tensor> {
    return Iota<float>({2});
  }),
              StatusIs(kInvalid, HasSubstr("got float32")));
}

TEST(NonTensorStackTest, RefusesToJoinOtherShapes) {
  const std::vector<NonTensorStack> parts = {Values({2}, {"1", "2"}),
                                             Values({1}, {"3"})};
  EXPECT_THAT(NonTensorStack::Stack(parts, 0),
              StatusIs(kInvalid, HasSubstr("got [1], want [2]")));
  EXPECT_THAT(NonTensorStack::Cat(parts, 1), StatusIs(kInvalid));
  EXPECT_THAT(NonTensorStack::Cat({}, 0), StatusIs(kInvalid));
  EXPECT_THAT(NonTensorStack::Cat({Values({}, {"1"})}, 0), StatusIs(kInvalid));
  EXPECT_THAT(Values({}, {"1"}).Gather({0}), StatusIs(kInvalid));
  EXPECT_THAT(parts[0].Gather({2}), IsOutOfRange());
}

TEST(NonTensorEntryTest, ShapeMustBeTheBatchShape) {
  TensorDict dict({2});
  EXPECT_THAT(dict.Set("note", Values({2, 1}, {"1", "2"})),
              StatusIs(kInvalid, AllOf(HasSubstr("shape of \"note\": got "
                                                 "[2, 1]"),
                                       HasSubstr("want the batch shape [2]"))));
  EXPECT_TRUE(dict.empty());
  RILL_ASSERT_OK(dict.Set("note", Values({2}, {"1", "2"})));
  EXPECT_EQ(dict.Kind("note"), EntryKind::kNonTensorStack);
  EXPECT_THAT(dict.GetNonTensor("note"),
              StatusIs(kInvalid, HasSubstr("got a stack of non-tensor values, "
                                           "want a non-tensor value")));
  EXPECT_THAT(dict.GetNonTensorStack("x"), IsNotFound());
  RILL_ASSERT_OK(dict.Set("next/all", NonTensor{"7"}));
  EXPECT_THAT(NotesOf(dict, "next/all"), ElementsAre("7", "7"));
}

TEST(NonTensorEntryTest, ScalarBatchMakesItOneValue) {
  const TensorDict dict = Column({2}, {"1", "2"});
  EXPECT_THAT(dict.Index(1)->GetNonTensor("note"),
              IsOkAndHolds(NonTensor{"2"}));
  EXPECT_THAT(dict.Slice(0, 0, 1)->Squeeze(0)->GetNonTensor("note"),
              IsOkAndHolds(NonTensor{"1"}));
  EXPECT_THAT(dict.Slice(0, 0, 1)->Reshape({})->GetNonTensor("note"),
              IsOkAndHolds(NonTensor{"1"}));
}

TEST(NonTensorEntryTest, StackKeepsEqualValuesAsOne) {
  TensorDict a, b;
  RILL_ASSERT_OK(a.Set("note", NonTensor{"1"}));
  RILL_ASSERT_OK(a.Set("next/same", NonTensor{"9"}));
  b = a;
  RILL_ASSERT_OK(b.Set("note", NonTensor{"2"}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict both, Stack({a, b, a}));
  EXPECT_THAT(NotesOf(both), ElementsAre("1", "2", "1"));
  EXPECT_THAT(both.GetNonTensor("next/same"), IsOkAndHolds(NonTensor{"9"}));
  EXPECT_THAT(both.Index(1), IsOkAndHolds(BitEqualTo(b)));
}

TEST(NonTensorEntryTest, CatJoinsValuesAndStacks) {
  TensorDict one({2});
  RILL_ASSERT_OK(one.Set("note", NonTensor{"0"}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all,
                            Cat({one, Column({3}, {"1", "2", "3"}), one}));
  EXPECT_THAT(NotesOf(all), ElementsAre("0", "0", "1", "2", "3", "0", "0"));
}

TEST(NonTensorEntryTest, ComparisonNamesKeyAndIndex) {
  TensorDict a({2}), b({2});
  RILL_ASSERT_OK(a.Set("next", Column({2}, {"1", "2"})));
  RILL_ASSERT_OK(b.Set("next", Column({2}, {"1", "3"})));
  EXPECT_THAT(a.CheckEqual(b),
              IsFailedPrecondition("\"next/note\" differs first at [1]: got 2, "
                                   "want 3"));
  RILL_EXPECT_OK(a.CheckEqual(a));
  RILL_ASSERT_OK(b.Set("next/note", NonTensor{"1"}));
  EXPECT_THAT(a.CheckClose(b, 1, 1),
              IsFailedPrecondition("got a stack of non-tensor values"));
}

TEST(NonTensorEntryTest, ReuseChangesValuesButNotLeaves) {
  TensorDict table = MakeSteps(4);
  RILL_ASSERT_OK(table.Set("note", Values({4}, {"0", "1", "2", "3"})));
  RILL_ASSERT_OK(table.Set("next/all", NonTensor{"\"a\""}));
  TensorDict out = *table.Gather({0, 1});
  EXPECT_THAT(NotesOf(out), ElementsAre("0", "1"));
  const void* const bytes = out.Find("action")->raw_data();
  RILL_ASSERT_OK(table.Set("next/all", NonTensor{"\"b\""}));
  out.Lock();  // Values may change like bytes.
  RILL_ASSERT_OK(table.GatherInto({3, 3}, &out));
  EXPECT_THAT(NotesOf(out), ElementsAre("3", "3"));
  EXPECT_THAT(out.GetNonTensor("next/all"), IsOkAndHolds(NonTensor{"\"b\""}));
  EXPECT_EQ(out.Find("action")->raw_data(), bytes);
  out.Unlock();
  std::vector<TensorDict> rows = {*table.Index(1), *table.Index(2)};
  RILL_ASSERT_OK(StackInto(rows, 0, &out));
  EXPECT_THAT(NotesOf(out), ElementsAre("1", "2"));
  EXPECT_EQ(out.Find("action")->raw_data(), bytes);
  EXPECT_THAT(table.GatherInto({4}, &out), IsOutOfRange());
  EXPECT_THAT(NotesOf(out), ElementsAre("1", "2"));
}

TEST(NonTensorEntryTest, StaysWhereShapesDo) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Set("note", Values({2}, {"1", "2"})));
  EXPECT_THAT(dict.Clone(), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(dict.To(Device::Cpu()), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(dict.DebugString(), HasSubstr("note: [2] {1, 2}"));
  const auto same = [](absl::string_view, const Tensor& leaf) {
    return absl::StatusOr<Tensor>(leaf);
  };
  EXPECT_THAT(dict.Apply(same), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(
      Column({2}, {"1", "2"})
          .MapShape({2},
                    [](const Tensor& leaf) { return leaf.Slice(0, 0, 1); }),
      StatusIs(kInvalid, HasSubstr("at key \"note\"")));
}

// Every operation moves the values as it moves an int64 column beside them.
TEST(NonTensorEntryTest, RandomOperationsMoveValuesLikeATensor) {
  const Rng rng(11);
  for (uint32_t round = 0; round < 300; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    const Shape shape = {pick(3) + 1, pick(3) + 1};
    TensorDict dict(shape);
    const Tensor ids = Iota<int64_t>(shape);
    std::vector<std::string> values;
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      values.push_back(absl::StrCat(i % 5));  // Some stand twice.
      ids.data<int64_t>()[i] = i % 5;
    }
    RILL_ASSERT_OK(dict.Set("deep/id", ids));
    RILL_ASSERT_OK(dict.Set("deep/note", Values(shape, values)));
    std::string did;
    for (int step = 0; step < 6; ++step) {
      const Shape batch = dict.batch_shape();
      const int rank = batch.rank();
      const int dim = static_cast<int>(pick(rank + 1));
      const bool is_dim = dim < rank;
      absl::StatusOr<TensorDict> next = dict;
      const int64_t op = pick(8);
      absl::StrAppend(&did, " ", op, "@", dim, batch.ToString());
      if (op == 0 && is_dim && batch[dim] > 0) {
        next = dict.SelectDim(dim, pick(batch[dim]));
      } else if (op == 1 && is_dim) {
        const int64_t begin = pick(batch[dim] + 1);
        next = dict.Slice(dim, begin, begin + pick(batch[dim] - begin + 1));
      } else if (op == 2 && rank > 0 && batch[0] > 0) {
        next = dict.Gather({pick(batch[0]), pick(batch[0]), pick(batch[0])});
      } else if (op == 3 && rank < 4) {
        next = dict.Unsqueeze(dim);
      } else if (op == 4) {
        next = dict.Reshape({1, batch.num_elements()});
      } else if (op == 5 && rank < 4) {
        next = Stack({dict, dict}, dim);
      } else if (op == 6 && is_dim) {
        next = Cat({dict, *dict.Slice(dim, 0, batch[dim] / 2), dict}, dim);
      } else if (op == 7 && rank == 2) {
        next = dict.MapShape({batch[1], batch[0]}, [](const Tensor& leaf) {
          return leaf.Permute({1, 0});
        });
      }
      RILL_ASSERT_OK(next.status()) << did;
      dict = *std::move(next);
      std::vector<std::string> want;
      const Tensor flat = *dict.Find("deep/id")->Contiguous();
      for (int64_t i = 0; i < flat.num_elements(); ++i) {
        want.push_back(absl::StrCat(flat.data<int64_t>()[i]));
      }
      ASSERT_EQ(NotesOf(dict, "deep/note"), want) << did;
      RILL_ASSERT_OK(dict.CheckEqual(*dict.Clone())) << did;
    }
  }
}

}  // namespace
}  // namespace rill
