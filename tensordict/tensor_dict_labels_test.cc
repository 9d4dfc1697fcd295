// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/tensordict/lazy_stack.h"
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kLocked = absl::StatusCode::kFailedPrecondition;

// --- Locking -----------------------------------------------------------------

// D1: a leaf that does not start with the batch shape is refused; a locked
// dictionary takes no new keys, and its bytes may be written.
TEST(TensorDictLockTest, D1LeavesStartWithTheBatchShape) {
  TensorDict dict({2, 3});
  for (const Shape& shape : {Shape({}), Shape({2}), Shape({3, 2}),
                             Shape({2, 2}), Shape({1, 2, 3})}) {
    EXPECT_THAT(dict.Set("x", Iota<float>(shape)),
                StatusIs(kInvalid, HasSubstr("starts with the batch shape "
                                             "[2, 3]")));
  }
  EXPECT_TRUE(dict.empty());
  RILL_EXPECT_OK(dict.Set("x", Iota<float>({2, 3, 1})));
}

TEST(TensorDictLockTest, D1LockedTakesBytesButNoKeys) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(
      dict.Set("rows", *LazyStack::Create({TensorDict(), TensorDict()})));
  RILL_ASSERT_OK(dict.Set("rows/x", Iota<float>({2})));
  const TensorDict before = *dict.Clone();
  dict.Lock();
  const Tensor fits = Iota<float>({2});
  EXPECT_THAT(dict.Set("new", fits), StatusIs(kLocked, HasSubstr("locked")));
  EXPECT_THAT(dict.Set("action", fits), StatusIs(kLocked));
  EXPECT_THAT(dict.Set("next/new", fits), StatusIs(kLocked));
  EXPECT_THAT(dict.Set("rows/new", fits), StatusIs(kLocked));
  EXPECT_THAT(dict.Set("new", TensorDict({2})), StatusIs(kLocked));
  EXPECT_THAT(dict.Set("new", NonTensor{"1"}), StatusIs(kLocked));
  EXPECT_THAT(dict.SetDefault("new", fits), StatusIs(kLocked));
  EXPECT_THAT(dict.SetDefault("action", fits),
              IsOkAndHolds(TensorIs(DType::kInt64, {2})));
  EXPECT_THAT(dict.Delete("action"), StatusIs(kLocked));
  EXPECT_THAT(dict.Delete("rows/x"), StatusIs(kLocked));
  EXPECT_THAT(dict.Pop("action"), StatusIs(kLocked));
  EXPECT_THAT(dict.Rename("action", "a"), StatusIs(kLocked));
  EXPECT_THAT(dict.Update(TensorDict({2})), StatusIs(kLocked));
  EXPECT_THAT(dict, BitEqualTo(before));
  RILL_EXPECT_OK(dict.SetInPlace("action", MakeTensor<int64_t>({5, 6}, {2})));
  RILL_EXPECT_OK(dict.SetAt("next/reward", 1, MakeTensor<float>({9}, {1})));
  EXPECT_THAT(dict.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(5, 6)));
  EXPECT_THAT(dict.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(0, 9)));
  RILL_EXPECT_OK(dict.CopyFrom(before));
  EXPECT_THAT(dict, BitEqualTo(before));
}

TEST(TensorDictLockTest, NestedAreLockedWithTheRoot) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("a/b/x", Iota<float>({2})));
  dict.Lock();
  EXPECT_TRUE(dict.FindDict("a/b")->is_locked());
  // A copy of any level is its own, and unlocked on every level.
  TensorDict copy = dict;
  EXPECT_FALSE(copy.FindDict("a/b")->is_locked());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict nested, dict.GetDict("a"));
  EXPECT_FALSE(nested.is_locked());
  RILL_EXPECT_OK(nested.Set("b/y", Iota<float>({2})));
  EXPECT_FALSE(dict.Contains("a/b/y"));
  dict.Unlock();
  EXPECT_FALSE(dict.FindDict("a/b")->is_locked());
  RILL_EXPECT_OK(dict.Set("a/b/y", Iota<float>({2})));
  dict.Lock();
  // A locked one that moves into another is unlocked throughout.
  TensorDict parent({2});
  RILL_ASSERT_OK(parent.Set("in", std::move(dict)));
  EXPECT_FALSE(parent.FindDict("in/a/b")->is_locked());
  RILL_EXPECT_OK(parent.Set("in/a/b/z", Iota<float>({2})));
}

// --- Names of dimensions -----------------------------------------------------

TensorDict Named() {
  TensorDict dict({2, 3});
  RILL_EXPECT_OK(dict.Set("x", Iota<float>({2, 3, 4})));
  RILL_EXPECT_OK(dict.Set("next/y", Iota<float>({2, 3})));
  RILL_EXPECT_OK(dict.SetDimNames({"env", "time"}));
  return dict;
}

TEST(DimNamesTest, SetAndAsked) {
  TensorDict dict = Named();
  EXPECT_THAT(dict.dim_names(), ElementsAre("env", "time"));
  EXPECT_THAT(dict.DimNamed("time"), IsOkAndHolds(1));
  EXPECT_THAT(dict.DimNamed("x"), IsNotFound("env, time"));
  EXPECT_THAT(dict.DimNamed(""), IsNotFound());
  EXPECT_THAT(dict.SetDimNames({"a"}),
              StatusIs(kInvalid, HasSubstr("got 1, want 2")));
  EXPECT_THAT(dict.SetDimNames({"a", "a"}),
              StatusIs(kInvalid, HasSubstr("got \"a\" twice")));
  EXPECT_THAT(dict.dim_names(), ElementsAre("env", "time"));
  EXPECT_THAT(dict.DebugString(), HasSubstr("[2, 3] (env, time)"));
  EXPECT_THAT(dict, BitEqualTo(*dict.Clone()));
  RILL_ASSERT_OK(dict.SetDimNames({"", ""}));
  EXPECT_THAT(dict.dim_names(), IsEmpty());
  RILL_ASSERT_OK(dict.SetDimNames({"", "t"}));
  dict.ClearDimNames();
  EXPECT_THAT(dict.dim_names(), IsEmpty());
  EXPECT_THAT(dict.DimNamed("t"), IsNotFound("there are: none"));
}

TEST(DimNamesTest, NestedInherit) {
  TensorDict dict = Named();
  TensorDict deeper({2, 3, 1});
  RILL_ASSERT_OK(dict.Set("deeper", deeper));
  EXPECT_THAT(dict.GetDict("next")->dim_names(), ElementsAre("env", "time"));
  EXPECT_THAT(dict.GetDict("deeper")->dim_names(),
              ElementsAre("env", "time", ""));
  RILL_ASSERT_OK(deeper.SetDimNames({"a", "b", "c"}));
  RILL_ASSERT_OK(dict.Set("deeper", deeper));
  RILL_ASSERT_OK(dict.Set("deeper/still", TensorDict({2, 3, 1, 1})));
  EXPECT_THAT(dict.GetDict("deeper/still")->dim_names(),
              ElementsAre("a", "b", "c", ""));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, dict.SelectDim(1, 0));
  EXPECT_THAT(row.GetDict("deeper")->dim_names(), ElementsAre("a", "c"));
}

TEST(DimNamesTest, OperationsCarryThem) {
  const TensorDict dict = Named();
  const auto names = [](const absl::StatusOr<TensorDict>& result) {
    RILL_EXPECT_OK(result.status());
    return result.ok() ? result->dim_names() : std::vector<std::string>{"?"};
  };
  EXPECT_THAT(names(dict.Index(0)), ElementsAre("time"));
  EXPECT_THAT(names(dict.SelectDim(1, 0)), ElementsAre("env"));
  EXPECT_THAT(names(dict.Index(0)->Index(0)), IsEmpty());
  EXPECT_THAT(names(dict.Slice(1, 0, 2)), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.Slice(1, 0, 1)->Squeeze(1)), ElementsAre("env"));
  EXPECT_THAT(names(dict.Unsqueeze(1)), ElementsAre("env", "", "time"));
  EXPECT_THAT(names(dict.Gather({1, 1})), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.Clone()), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.To(Device::Cpu())), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.ToDType(DType::kFloat64)), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.Select({"next/y"})), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.Exclude({"x"})), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.EmptyLike()), ElementsAre("env", "time"));
  EXPECT_THAT(names(dict.Reshape({2, 3})), ElementsAre("env", "time"));
  EXPECT_THAT(names(Stack({dict, dict}, 1)), ElementsAre("env", "", "time"));
  EXPECT_THAT(names(Cat({dict, dict}, 1)), ElementsAre("env", "time"));
  // Where the dimensions are not known any more.
  EXPECT_THAT(names(dict.Reshape({3, 2})), IsEmpty());
  const auto same = [](const Tensor& leaf) {
    return absl::StatusOr<Tensor>(leaf);
  };
  const auto keyed = [&](absl::string_view, const Tensor& leaf) {
    return same(leaf);
  };
  EXPECT_THAT(names(dict.MapShape({2, 3}, same)), IsEmpty());
  EXPECT_THAT(names(dict.Apply(keyed)), ElementsAre("env", "time"));
  // A result that is reused takes the new names.
  TensorDict out = *Named().Gather({0});
  TensorDict table = Named();
  table.ClearDimNames();
  RILL_ASSERT_OK(table.GatherInto({1}, &out));
  EXPECT_THAT(out.dim_names(), IsEmpty());
  RILL_ASSERT_OK(CatInto({dict}, 0, &out));
  RILL_ASSERT_OK(StackInto({table, table}, 0, &out));
  RILL_ASSERT_OK(StackInto({dict, dict}, 0, &out));
  EXPECT_THAT(out.dim_names(), ElementsAre("", "env", "time"));
}

// Names move with the sizes: every dimension has a size of its own here.
TEST(DimNamesTest, RandomOperationsKeepNamesWithTheirSizes) {
  const Rng rng(8);
  for (uint32_t round = 0; round < 200; ++round) {
    TensorDict dict({2, 3, 5});
    RILL_ASSERT_OK(dict.SetDimNames({"2", "3", "5"}));
    uint32_t draw = 0;
    for (int step = 0; step < 6; ++step) {
      const Shape batch = dict.batch_shape();
      const auto dim =
          static_cast<int>(rng.UniformInt(round, draw++, batch.rank() + 1));
      const int64_t op = rng.UniformInt(round, draw++, 3);
      absl::StatusOr<TensorDict> next = dict;
      if (op == 0 && dim < batch.rank()) next = dict.SelectDim(dim, 0);
      if (op == 1 && batch.rank() < 6) next = dict.Unsqueeze(dim);
      if (op == 2 && batch.rank() < 6) next = Stack({dict}, dim);
      RILL_ASSERT_OK(next.status());
      dict = *std::move(next);
      std::vector<std::string> want;
      bool any = false;
      for (const int64_t size : dict.batch_shape().sizes()) {
        want.push_back(size == 1 ? "" : std::to_string(size));
        any = any || size > 1;
      }
      if (!any) want.clear();
      ASSERT_EQ(dict.dim_names(), want);
    }
  }
}

}  // namespace
}  // namespace rill
