// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
using ::testing::HasSubstr;

std::vector<TensorDict> ThreeSteps() {
  return {MakeSteps(2), MakeSteps(2, 10), MakeSteps(2, 20)};
}

TEST(StackTest, NewDimensionAnywhere) {
  const std::vector<TensorDict> dicts = ThreeSteps();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict front, Stack(dicts));
  EXPECT_EQ(front.batch_shape(), Shape({3, 2}));
  EXPECT_EQ(front.FindDict("next")->batch_shape(), Shape({3, 2}));
  EXPECT_THAT(front.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 1, 10, 11, 20, 21)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, Stack(dicts, 1));
  EXPECT_EQ(back.batch_shape(), Shape({2, 3}));
  EXPECT_EQ(back.Find("observation")->shape(), Shape({2, 3, 4}));
  EXPECT_THAT(back.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 10, 20, 1, 11, 21)));
}

TEST(StackTest, UndoneByIndexing) {
  const std::vector<TensorDict> dicts = ThreeSteps();
  for (int dim = 0; dim < 2; ++dim) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict stacked, Stack(dicts, dim));
    for (size_t i = 0; i < dicts.size(); ++i) {
      EXPECT_THAT(stacked.SelectDim(dim, static_cast<int64_t>(i)),
                  IsOkAndHolds(BitEqualTo(dicts[i])));
    }
  }
}

TEST(CatTest, JoinsDifferentSizes) {
  const std::vector<TensorDict> dicts = {MakeSteps(2), MakeSteps(0),
                                         MakeSteps(3, 2)};
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, Cat(dicts));
  EXPECT_THAT(all, BitEqualTo(MakeSteps(5)));
}

TEST(CatTest, JoinsAnyBatchDimension) {
  const TensorDict grid = *MakeSteps(12).Reshape({3, 4});
  for (int dim = 0; dim < 2; ++dim) {
    const int64_t size = grid.batch_shape()[dim];
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict all,
        Cat({*grid.Slice(dim, 0, 1), *grid.Slice(dim, 1, size)}, dim));
    EXPECT_THAT(all, BitEqualTo(grid));
  }
}

TEST(StackTest, DifferencesNameKeyAndBothSides) {
  const TensorDict steps = MakeSteps(2);
  TensorDict other = steps;
  RILL_ASSERT_OK(other.Set("next/reward", Iota<float>({2, 2})));
  EXPECT_THAT(Stack({steps, steps, other}),
              IsInvalidArgument("shape of \"next/reward\": got [2, 2] in "
                                "dictionary 2, want [2, 1] as in dictionary "
                                "0"));
  RILL_ASSERT_OK(other.Set("next/reward", Iota<double>({2, 1})));
  EXPECT_THAT(Stack({steps, other}),
              IsInvalidArgument("dtype of \"next/reward\": got float64"));
  RILL_ASSERT_OK(other.Set("next", Iota<float>({2})));
  EXPECT_THAT(Stack({steps, other}),
              IsInvalidArgument("kind of \"next\": got a tensor"));
  RILL_ASSERT_OK(other.Delete("next"));
  EXPECT_THAT(Stack({steps, other}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("keys: got \"observation\", \"action\" "
                                       "in dictionary 1"),
                             HasSubstr("\"next/done\" as in dictionary 0"))));
  RILL_ASSERT_OK(other.Set("nexd", Iota<float>({2})));
  EXPECT_THAT(Stack({steps, other}), IsInvalidArgument("keys"));
  EXPECT_THAT(Stack({steps, MakeSteps(3)}),
              IsInvalidArgument("batch shape: got [3] in dictionary 1"));
}

TEST(StackTest, BadArguments) {
  EXPECT_THAT(Stack({}), IsInvalidArgument("got 0, want at least 1"));
  EXPECT_THAT(Stack({MakeSteps(2)}, 2),
              IsInvalidArgument("got 2, want one in [0, 2)"));
  EXPECT_THAT(Cat({MakeSteps(2)}, 1), IsInvalidArgument());
  EXPECT_THAT(Cat({TensorDict()}), IsInvalidArgument());
  EXPECT_THAT(Cat({MakeSteps(2), TensorDict()}), IsInvalidArgument());
  EXPECT_THAT(Stack({TensorDict({1, 1, 1, 1, 1, 1, 1, 1})}),
              IsInvalidArgument());
  EXPECT_THAT(StackInto({MakeSteps(2)}, 0, nullptr), IsInvalidArgument());
}

TEST(StackTest, NonTensorValuesThatDifferBecomeAStack) {
  TensorDict a({1}), b({1});
  RILL_ASSERT_OK(a.Set("name", NonTensor{"1"}));
  RILL_ASSERT_OK(b.Set("name", NonTensor{"1"}));
  EXPECT_THAT(Stack({a, b})->GetNonTensor("name"),
              IsOkAndHolds(NonTensor{"1"}));
  RILL_ASSERT_OK(b.Set("name", NonTensor{"2"}));
  EXPECT_THAT(Stack({a, b})->GetNonTensorStack("name"),
              IsOkAndHolds(*NonTensorStack::Create({2, 1}, {"1", "2"})));
}

TEST(StackTest, IntoReusesWhatFits) {
  const std::vector<TensorDict> dicts = ThreeSteps();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, Stack(dicts));
  const std::byte* const before = out.Find("next/done")->raw_data();
  const std::vector<TensorDict> others = {MakeSteps(2, 7), MakeSteps(2, 8),
                                          MakeSteps(2, 9)};
  RILL_ASSERT_OK(StackInto(others, 0, &out));
  EXPECT_EQ(out.Find("next/done")->raw_data(), before);
  EXPECT_THAT(out, BitEqualTo(*Stack(others)));
  RILL_ASSERT_OK(StackInto({others.data(), 2}, 0, &out));
  EXPECT_THAT(out, BitEqualTo(*Stack({others[0], others[1]})));
  RILL_ASSERT_OK(CatInto(others, 0, &out));
  EXPECT_EQ(out.batch_shape(), Shape({6}));
}

TEST(StackTest, ARefusedStackLeavesOutAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, Stack(ThreeSteps()));
  EXPECT_THAT(StackInto({MakeSteps(2), MakeSteps(2), MakeSteps(3)}, 0, &out),
              IsInvalidArgument());
  EXPECT_THAT(out, BitEqualTo(*Stack(ThreeSteps())));
}

TEST(StackTest, OutMayBeAViewOfAnInput) {
  const TensorDict all = *Stack(ThreeSteps());
  TensorDict out = all;
  RILL_ASSERT_OK(
      StackInto({*all.Index(2), *all.Index(1), *all.Index(0)}, 0, &out));
  EXPECT_THAT(out.Index(0), IsOkAndHolds(BitEqualTo(MakeSteps(2, 20))));
  EXPECT_THAT(out.Index(2), IsOkAndHolds(BitEqualTo(MakeSteps(2))));
  EXPECT_THAT(all.Index(0), IsOkAndHolds(BitEqualTo(MakeSteps(2))));
}

TEST(StackTest, WorksOnADevice) {
  std::vector<TensorDict> there;
  for (const TensorDict& dict : ThreeSteps()) {
    there.push_back(*dict.To(Device::Fake()));
  }
  for (int dim = 0; dim < 2; ++dim) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict stacked, Stack(there, dim));
    EXPECT_EQ(stacked.Find("action")->device(), Device::Fake());
    EXPECT_EQ(stacked.device(), Device::Fake());
    EXPECT_THAT(stacked, BitEqualTo(*Stack(ThreeSteps(), dim)));
  }
  there[1] = MakeSteps(2, 10);
  EXPECT_THAT(Stack(there), IsInvalidArgument("device of \"observation\""));
}

}  // namespace
}  // namespace rill
