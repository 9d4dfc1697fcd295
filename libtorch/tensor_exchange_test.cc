// SPDX-License-Identifier: Apache-2.0
#include "rill/libtorch/tensor_exchange.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 0, 1, 2, ... row-major.
Tensor Counted(const Shape& shape) {
  Tensor tensor = *Tensor::Empty(DType::kFloat32, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    tensor.data<float>()[i] = static_cast<float>(i);
  }
  return tensor;
}

// Bytes somebody else owns; `*freed` says whether they went.
std::shared_ptr<Buffer> WrapCounted(int64_t bytes, bool* freed,
                                    bool is_writable = true) {
  auto data = std::shared_ptr<std::byte[]>(
      new std::byte[static_cast<size_t>(bytes)](), [freed](std::byte* p) {
        *freed = true;
        delete[] p;
      });
  return Buffer::Wrap(data.get(), bytes, Device::Cpu(), MemoryKind::kPageable,
                      data, is_writable);
}

TEST(TensorExchangeTest, Example) {
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("observation", Counted({2, 3})));
  RILL_ASSERT_OK(batch.Set("next/reward", Counted({2, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(TorchTensors inputs, ToTorch(batch));
  EXPECT_THAT(inputs.keys(), ElementsAre("observation", "next/reward"));
  inputs["observation"].mul_(2);
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(0, 2, 4, 6, 8, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict same_bytes, FromTorch(inputs, {2}));
  EXPECT_THAT(same_bytes, BitEqualTo(batch));
  EXPECT_EQ(same_bytes.Get("next/reward")->raw_data(),
            batch.Get("next/reward")->raw_data());
}

TEST(TensorExchangeTest, EveryDTypeHasItsTorchTypeAndComesBack) {
  struct Row {
    DType dtype;
    at::ScalarType scalar;
  };
  const Row rows[kNumDTypes] = {{DType::kBool, at::kBool},
                                {DType::kUInt8, at::kByte},
                                {DType::kInt8, at::kChar},
                                {DType::kInt16, at::kShort},
                                {DType::kInt32, at::kInt},
                                {DType::kInt64, at::kLong},
                                {DType::kFloat16, at::kHalf},
                                {DType::kBFloat16, at::kBFloat16},
                                {DType::kFloat32, at::kFloat},
                                {DType::kFloat64, at::kDouble},
                                {DType::kUInt16, at::kUInt16},
                                {DType::kUInt32, at::kUInt32},
                                {DType::kUInt64, at::kUInt64},
                                {DType::kComplex64, at::kComplexFloat},
                                {DType::kComplex128, at::kComplexDouble}};
  for (const Row& row : rows) {
    SCOPED_TRACE(DTypeName(row.dtype));
    const Tensor tensor = *Tensor::Zeros(row.dtype, {3, 2});
    std::memset(tensor.raw_data(), 1, tensor.size_bytes());
    RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor shared, ToTorch(tensor));
    EXPECT_EQ(shared.scalar_type(), row.scalar);
    EXPECT_EQ(shared.data_ptr(), tensor.raw_data());
    EXPECT_EQ(static_cast<int64_t>(shared.nbytes()), tensor.size_bytes());
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor back, FromTorch(shared));
    EXPECT_THAT(back, BitEqualTo(tensor));
    EXPECT_EQ(back.raw_data(), tensor.raw_data());
  }
}

// An element at random by each side's own arithmetic: torch's against Rill's.
TEST(TensorExchangeTest, RandomViewsAreTheSameOnBothSides) {
  const Rng rng(/*seed=*/42);
  for (uint64_t round = 0; round < 300; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    Tensor view = Counted({pick(4) + 1, pick(5), pick(6) + 1});
    at::Tensor other = *ToTorch(view);
    const float* const begin = view.data<float>();
    for (int step = 0; step < 5; ++step) {
      const int d = static_cast<int>(pick(3));
      const int64_t size = view.shape()[d];
      switch (pick(3)) {
        case 0:
          view = *view.Permute({d, (d + 1) % 3, (d + 2) % 3});
          other = other.permute({d, (d + 1) % 3, (d + 2) % 3});
          break;
        case 1: {
          const int64_t from = pick(size + 1);
          const int64_t by = pick(3) + 1;
          view = *view.Slice(d, from, size, by);
          other = other.slice(d, from, size, by);
          break;
        }
        default:
          if (size != 1) break;
          view = *view.Expand(view.shape().WithSize(d, 3));
          std::vector<int64_t> sizes = other.sizes().vec();
          sizes[d] = 3;
          other = other.expand(sizes);
      }
    }
    RILL_ASSERT_OK_AND_ASSIGN(const at::Tensor to, ToTorch(view));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor from, FromTorch(other));
    ASSERT_TRUE(at::equal(to, other)) << view;
    ASSERT_THAT(from, BitEqualTo(view));
    if (view.num_elements() == 0) continue;
    ASSERT_EQ(to.data_ptr(), view.raw_data());
    ASSERT_EQ(from.raw_data(), view.raw_data());
    ASSERT_GE(to.data_ptr<float>(), begin);
  }
}

TEST(TensorExchangeTest, RankZeroAndNoElements) {
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor scalar, ToTorch(Counted({})));
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_THAT(FromTorch(scalar), IsOkAndHolds(BitEqualTo(Counted({}))));
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor none, ToTorch(Counted({4, 0})));
  EXPECT_THAT(none.sizes(), ElementsAre(4, 0));
  EXPECT_THAT(FromTorch(none), IsOkAndHolds(TensorIs(DType::kFloat32, {4, 0})));
  EXPECT_THAT(FromTorch(at::empty({0, 2})),
              IsOkAndHolds(TensorIs(DType::kFloat32, {0, 2})));
}

TEST(TensorExchangeTest, RillsBytesLiveUntilTorchHasNone) {
  bool freed = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      Tensor tensor,
      Tensor::View(WrapCounted(24, &freed), DType::kFloat32, {6}, 0));
  RILL_ASSERT_OK_AND_ASSIGN(at::Tensor shared, ToTorch(tensor));
  tensor = Tensor();
  at::Tensor row = shared.slice(0, 2, 4);
  shared.reset();
  EXPECT_FALSE(freed);
  EXPECT_EQ(row.fill_(3).sum().item<float>(), 6);
  row.reset();
  EXPECT_TRUE(freed);
}

TEST(TensorExchangeTest, RillsBytesLiveAfterTorchIsDone) {
  bool freed = false;
  RILL_ASSERT_OK_AND_ASSIGN(
      Tensor tensor,
      Tensor::View(WrapCounted(24, &freed), DType::kFloat32, {6}, 0));
  ToTorch(tensor)->fill_(2);
  EXPECT_FALSE(freed);
  EXPECT_THAT(tensor, TensorElementsAre<float>(2, 2, 2, 2, 2, 2));
}

TEST(TensorExchangeTest, TorchsBytesLiveUntilRillHasNone) {
  bool freed = false;
  float bytes[4] = {1, 2, 3, 4};
  at::Tensor tensor = at::from_blob(
      bytes, {4}, [&](void*) { freed = true; }, at::kFloat);
  RILL_ASSERT_OK_AND_ASSIGN(Tensor shared, FromTorch(tensor));
  tensor.reset();
  Tensor row = *shared.Index(2);
  shared = Tensor();
  EXPECT_FALSE(freed);
  EXPECT_THAT(row.Item<float>(), IsOkAndHolds(3));
  row = Tensor();
  EXPECT_TRUE(freed);
}

TEST(TensorExchangeTest, TorchsBytesLiveAfterRillIsDone) {
  const at::Tensor tensor = at::zeros({3});
  FromTorch(tensor)->data<float>()[1] = 7;
  EXPECT_EQ(tensor.sum().item<float>(), 7);
}

TEST(TensorExchangeTest, BytesThatRillHoldsAreNotResizedAway) {
  at::Tensor tensor = at::ones({3});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor shared, FromTorch(tensor));
  EXPECT_ANY_THROW(tensor.resize_({1000}));
  EXPECT_THAT(shared, TensorElementsAre<float>(1, 1, 1));
}

TEST(TensorExchangeTest, WhatTorchCannotShareIsRefused) {
  const auto refused = [](absl::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("ToTorch: "), HasSubstr(text)));
  };
  EXPECT_THAT(ToTorch(Tensor()), refused("without a buffer"));
  bool freed = false;
  EXPECT_THAT(ToTorch(*Tensor::View(WrapCounted(8, &freed, false),
                                    DType::kFloat32, {2}, 0)),
              refused("float32[2]: got a read-only tensor"));
  const Tensor base = Counted({4});
  EXPECT_THAT(
      ToTorch(*Tensor::View(base.buffer(), DType::kFloat32, {4}, 12, {-4})),
      refused("float32[4]: got [-4], want multiples of 4, none below 0"));
  EXPECT_THAT(
      ToTorch(*Tensor::View((*Tensor::Zeros(DType::kFloat64, {9})).buffer(),
                            DType::kComplex128, {3}, 0, {24})),
      refused("complex128[3]: got [24], want multiples of 16"));
}

TEST(TensorExchangeTest, ADeviceThatTorchHasNotIsRefused) {
  float place[2];
  const Tensor tensor = *Tensor::View(
      Buffer::Wrap(place, 8, Device::Cuda(7), MemoryKind::kDevice, nullptr),
      DType::kFloat32, {2}, 0);
  EXPECT_THAT(ToTorch(tensor),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("ToTorch: device: got cuda:7")));
}

TEST(TensorExchangeTest, EntriesThatAreNoTensorsAreRefusedByKey) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("next/reward", Counted({2})));
  RILL_ASSERT_OK(dict.Set("next/task", NonTensor{std::string("pick")}));
  EXPECT_THAT(ToTorch(dict),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ToTorch: \"next/task\": got a value that is "
                                 "no tensor")));
  RILL_ASSERT_OK(dict.Delete("next/task"));
  RILL_ASSERT_OK(dict.Set(
      "next/back",
      *Tensor::View(Counted({2}).buffer(), DType::kFloat32, {2}, 4, {-4})));
  EXPECT_THAT(ToTorch(dict),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ToTorch: \"next/back\": byte strides")));
}

TEST(TensorExchangeTest, WhatRillCannotShareIsRefused) {
  const auto refused = [](absl::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("FromTorch: "), HasSubstr(text)));
  };
  EXPECT_THAT(FromTorch(at::Tensor()), refused("undefined"));
  EXPECT_THAT(FromTorch(at::ones({2}).requires_grad_()), refused("detach()"));
  EXPECT_THAT(FromTorch(at::ones({2}).requires_grad_().mul(2)),
              refused("detach()"));
  EXPECT_THAT(FromTorch(at::ones({2}).to_sparse()), refused("to_dense()"));
  EXPECT_THAT(FromTorch(at::ones({2}, at::kComplexFloat).conj()),
              refused("resolve_conj()"));
  EXPECT_THAT(FromTorch(at::imag(at::ones({2}, at::kComplexFloat).conj())),
              refused("resolve_neg()"));
  EXPECT_THAT(FromTorch(at::empty({2}, at::device(at::kMeta))),
              refused("without bytes"));
  EXPECT_THAT(FromTorch(at::_efficientzerotensor({2})),
              refused("without bytes"));
  EXPECT_THAT(FromTorch(at::_lazy_clone(at::ones({2}))), refused("clone()"));
  EXPECT_THAT(FromTorch(at::ones({2}).to(at::kFloat8_e5m2)),
              refused("dtype: got Float8_e5m2"));
  EXPECT_THAT(
      FromTorch(at::quantize_per_tensor(at::ones({2}), 1, 0, at::kQInt8)),
      refused("dtype: got QInt8"));
  EXPECT_THAT(FromTorch(at::ones({1, 1, 1, 1, 1, 1, 1, 1, 1})),
              refused("rank"));
  alignas(8) char bytes[16] = {};
  EXPECT_THAT(FromTorch(at::from_blob(bytes + 1, {2}, at::kFloat)),
              refused("align"));
}

TEST(TensorExchangeTest, ADictionaryOfTorchsTensorsNamesTheKey) {
  EXPECT_THAT(FromTorch({{"a", at::ones({2})}, {"b/c", at::ones({3})}}, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b/c")));
  EXPECT_THAT(FromTorch({{"a", at::ones({2}).to_sparse()}}, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("FromTorch: \"a\": got a layout")));
  EXPECT_THAT(FromTorch({{"", at::ones({2})}}, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill
