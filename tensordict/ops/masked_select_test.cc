// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/masked_select.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::ElementsAre;

TEST(MaskedSelectTest, Example) {
  const TensorDict batch = MakeSteps(4);
  const Tensor mask = MakeTensor<bool>({false, true, false, true}, {4});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict chosen, ops::MaskedSelect(batch, mask));
  EXPECT_THAT(chosen, BitEqualTo(*batch.Gather({1, 3})));
}

TEST(MaskedSelectTest, D3NewAxisMaskAndIndexListGiveTorchsBatchSizes) {
  const TensorDict steps = MakeSteps(3);
  EXPECT_EQ(steps.Unsqueeze(0)->batch_shape(), Shape({1, 3}));
  EXPECT_EQ(steps.Unsqueeze(0)->Find("observation")->shape(), Shape({1, 3, 4}));
  const Tensor mask = MakeTensor<bool>({true, false, true}, {3});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict masked, MaskedSelect(steps, mask));
  EXPECT_EQ(masked.batch_shape(), Shape({2}));
  EXPECT_THAT(*masked.Find("action"), TensorElementsAre<int64_t>(0, 2));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, steps.Gather({0, 0, 1}));
  EXPECT_EQ(rows.batch_shape(), Shape({3}));
  EXPECT_THAT(*rows.Find("action"), TensorElementsAre<int64_t>(0, 0, 1));
}

TEST(MaskedSelectTest, MaskMayHaveFewerOrMoreDimensionsThanOne) {
  TensorDict dict({2, 3});
  RILL_ASSERT_OK(dict.Set("x", Iota<int32_t>({2, 3, 2})));
  RILL_ASSERT_OK(dict.Set("n", TensorDict({2, 3, 2})));
  RILL_ASSERT_OK(dict.Set("n/y", Iota<int32_t>({2, 3, 2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row,
                            MaskedSelect(dict, MakeTensor<bool>({0, 1}, {2})));
  EXPECT_EQ(row.batch_shape(), Shape({1, 3}));
  EXPECT_THAT(*row.Find("x"), TensorElementsAre<int32_t>(6, 7, 8, 9, 10, 11));
  // The mask need not be contiguous: {{0, 1, 0}, {1, 0, 0}}.
  const Tensor mask =
      *MakeTensor<bool>({0, 1, 1, 0, 0, 0}, {3, 2}).Permute({1, 0});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict some, MaskedSelect(dict, mask));
  EXPECT_EQ(some.batch_shape(), Shape({2}));
  EXPECT_EQ(some.FindDict("n")->batch_shape(), Shape({2, 2}));
  EXPECT_THAT(*some.Find("x"), TensorElementsAre<int32_t>(2, 3, 6, 7));
  EXPECT_THAT(*some.Find("n/y"), TensorElementsAre<int32_t>(2, 3, 6, 7));
  EXPECT_EQ(
      MaskedSelect(dict, *Tensor::Zeros(DType::kBool, {2, 3}))->batch_shape(),
      Shape({0}));
}

TEST(MaskedSelectTest, EveryKindFollows) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(
      dict.Set("who", *NonTensorStack::Create({2}, {"\"a\"", "\"b\""})));
  RILL_ASSERT_OK(
      dict.Set("lazy", *LazyStack::Create({TensorDict(), TensorDict()})));
  RILL_ASSERT_OK(dict.Set(
      "rows", *RaggedTensor::FromRows({Iota<float>({1}), Iota<float>({3})})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                            MaskedSelect(dict, MakeTensor<bool>({0, 1}, {2})));
  EXPECT_THAT(part.GetNonTensorStack("who")->values(), ElementsAre("\"b\""));
  EXPECT_EQ(part.GetLazyStack("lazy")->size(), 1);
  EXPECT_EQ(part.GetRagged("rows")->Row(0)->shape(), Shape({3}));
}

TEST(MaskedSelectTest, OtherMasksAreRefused) {
  const TensorDict steps = MakeSteps(3);
  for (const Tensor& mask :
       {Iota<int64_t>({3}), *Tensor::Zeros(DType::kBool, {4}),
        *Tensor::Zeros(DType::kBool, {3, 1}),
        *Tensor::Zeros(DType::kBool, {})}) {
    EXPECT_THAT(MaskedSelect(steps, mask),
                IsInvalidArgument("of batch shape [3]"))
        << mask;
  }
}

}  // namespace
}  // namespace rill::ops
