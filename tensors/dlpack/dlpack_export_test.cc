// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
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

// Calls the deleter, as a consumer does.
struct Deleter {
  template <typename Managed>
  void operator()(Managed* managed) const {
    managed->deleter(managed);
  }
};
template <typename Managed>
using Handed = std::unique_ptr<Managed, Deleter>;

Handed<DLManagedTensor> Export(const Tensor& tensor) {
  return Handed<DLManagedTensor>(*ToDLPack(tensor));
}
Handed<DLManagedTensorVersioned> ExportVersioned(const Tensor& tensor) {
  return Handed<DLManagedTensorVersioned>(*ToDLPackVersioned(tensor));
}

std::vector<int64_t> Sizes(const DLTensor& t) {
  return {t.shape, t.shape + t.ndim};
}
std::vector<int64_t> Strides(const DLTensor& t) {
  return {t.strides, t.strides + t.ndim};
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

TEST(DLPackTest, Example) {
  const Tensor tensor = Iota<float>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(DLManagedTensor * managed, ToDLPack(tensor));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor same_bytes, FromDLPack(managed));
  tensor.data<float>()[0] = 7;
  EXPECT_THAT(same_bytes, TensorElementsAre<float>(7, 1, 2, 3, 4, 5));
}

TEST(DLPackExportTest, EveryDTypeHasItsCodeAndComesBack) {
  struct Row {
    DType dtype;
    int code;
    int bits;
  };
  // The public numbers, written out.
  const Row rows[kNumDTypes] = {
      {DType::kBool, 6, 8},        {DType::kUInt8, 1, 8},
      {DType::kInt8, 0, 8},        {DType::kInt16, 0, 16},
      {DType::kInt32, 0, 32},      {DType::kInt64, 0, 64},
      {DType::kFloat16, 2, 16},    {DType::kBFloat16, 4, 16},
      {DType::kFloat32, 2, 32},    {DType::kFloat64, 2, 64},
      {DType::kUInt16, 1, 16},     {DType::kUInt32, 1, 32},
      {DType::kUInt64, 1, 64},     {DType::kComplex64, 5, 64},
      {DType::kComplex128, 5, 128}};
  for (const Row& row : rows) {
    SCOPED_TRACE(DTypeName(row.dtype));
    const Tensor tensor = *Tensor::Zeros(row.dtype, {3, 2});
    std::memset(tensor.raw_data(), 1, tensor.size_bytes());
    auto plain = Export(tensor);
    auto versioned = ExportVersioned(tensor);
    for (const DLTensor& t : {plain->dl_tensor, versioned->dl_tensor}) {
      EXPECT_EQ(t.dtype.code, row.code);
      EXPECT_EQ(t.dtype.bits, row.bits);
      EXPECT_EQ(t.dtype.lanes, 1);
      EXPECT_EQ(t.data, tensor.raw_data());
      EXPECT_EQ(t.byte_offset, 0);
      EXPECT_THAT(Sizes(t), ElementsAre(3, 2));
      EXPECT_THAT(Strides(t), ElementsAre(2, 1));
      EXPECT_EQ(t.device.device_type, kDLCPU);
      EXPECT_EQ(t.device.device_id, 0);
    }
    EXPECT_THAT(FromDLPack(plain.release()), IsOkAndHolds(BitEqualTo(tensor)));
    EXPECT_THAT(FromDLPack(versioned.release()),
                IsOkAndHolds(BitEqualTo(tensor)));
  }
}

TEST(DLPackExportTest, StridedViewsAreSharedAsTheyLie) {
  const Tensor base = Iota<int32_t>({4, 6});
  const Tensor view = *(*base.Permute({1, 0})).Slice(0, 1, 6, 2);  // [3, 4]
  auto managed = Export(view);
  const DLTensor& t = managed->dl_tensor;
  EXPECT_EQ(t.data, base.data<int32_t>() + 1);
  EXPECT_THAT(Sizes(t), ElementsAre(3, 4));
  EXPECT_THAT(Strides(t), ElementsAre(2, 6));
  EXPECT_THAT(FromDLPack(managed.release()), IsOkAndHolds(BitEqualTo(view)));
}

TEST(DLPackExportTest, NegativeAndZeroStridesArePassedOn) {
  const Tensor base = Iota<int16_t>({5});
  const Tensor reversed =
      *Tensor::View(base.buffer(), DType::kInt16, {5}, 8, {-2});
  auto managed = Export(reversed);
  EXPECT_EQ(managed->dl_tensor.data, base.data<int16_t>() + 4);
  EXPECT_THAT(Strides(managed->dl_tensor), ElementsAre(-1));
  EXPECT_THAT(FromDLPack(managed.release()),
              IsOkAndHolds(TensorElementsAre<int16_t>(4, 3, 2, 1, 0)));

  const Tensor repeated = *(*base.Unsqueeze(0)).Expand({3, 5});
  EXPECT_THAT(Strides(Export(repeated)->dl_tensor), ElementsAre(0, 1));
}

TEST(DLPackExportTest, StridesThatSayNothingAreRowMajor) {
  const Tensor base = Iota<int32_t>({2, 3});
  const Tensor one =
      *Tensor::View(base.buffer(), DType::kInt32, {2, 1, 3}, 0, {12, 7, 4});
  EXPECT_THAT(Strides(Export(one)->dl_tensor), ElementsAre(3, 3, 1));
}

TEST(DLPackExportTest, RankZeroAndNoElements) {
  auto scalar = Export(Iota<int32_t>({}));
  EXPECT_EQ(scalar->dl_tensor.ndim, 0);
  EXPECT_THAT(FromDLPack(scalar.release()),
              IsOkAndHolds(AllOf(TensorIs(DType::kInt32, {}),
                                 TensorElementsAre<int32_t>(0))));

  auto none = Export(*Iota<double>({4, 6}).Slice(1, 2, 2));
  EXPECT_EQ(none->dl_tensor.data, nullptr);
  EXPECT_THAT(Sizes(none->dl_tensor), ElementsAre(4, 0));
  EXPECT_THAT(Strides(none->dl_tensor), ElementsAre(1, 1));
  EXPECT_THAT(FromDLPack(none.release()),
              IsOkAndHolds(TensorIs(DType::kFloat64, {4, 0})));
}

TEST(DLPackExportTest, ByteStridesBetweenElementsAreRefused) {
  // complex128 needs alignment to 8 only, so strides of 24 are allowed.
  const Tensor base = *Tensor::Zeros(DType::kFloat64, {9});
  const Tensor view =
      *Tensor::View(base.buffer(), DType::kComplex128, {3}, 0, {24});
  EXPECT_THAT(ToDLPack(view),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("ToDLPack: byte strides of complex128"),
                             HasSubstr("got [24], want multiples of 16"))));
  EXPECT_THAT(ToDLPackVersioned(view), IsInvalidArgument());
  EXPECT_THAT(Strides(Export(*view.Contiguous())->dl_tensor), ElementsAre(1));
}

TEST(DLPackExportTest, ReadOnlyNeedsTheVersionedForm) {
  bool freed = false;
  const Tensor tensor =
      *Tensor::View(WrapCounted(8, &freed, false), DType::kFloat32, {2}, 0);
  EXPECT_THAT(ToDLPack(tensor), IsInvalidArgument("read-only tensor"));
  auto managed = ExportVersioned(tensor);
  EXPECT_EQ(managed->flags, kDLPackFlagReadOnly);
  RILL_ASSERT_OK_AND_ASSIGN(Tensor back, FromDLPack(managed.release()));
  EXPECT_FALSE(back.is_writable());

  auto writable = ExportVersioned(Iota<float>({2}));
  EXPECT_EQ(writable->flags, 0);
  EXPECT_EQ(writable->version.major, 1);
  RILL_ASSERT_OK_AND_ASSIGN(back, FromDLPack(writable.release()));
  EXPECT_TRUE(back.is_writable());
}

TEST(DLPackExportTest, DevicesHaveTheirPublicNumbers) {
  float place[2];
  const auto wrap = [&](Device device, MemoryKind kind) {
    return *Tensor::View(Buffer::Wrap(place, 8, device, kind, nullptr),
                         DType::kFloat32, {2}, 0);
  };
  const auto gpu = Export(wrap(Device::Cuda(3), MemoryKind::kDevice));
  EXPECT_EQ(gpu->dl_tensor.device.device_type, 2);
  EXPECT_EQ(gpu->dl_tensor.device.device_id, 3);
  const auto pinned = Export(wrap(Device::Cpu(), MemoryKind::kPinned));
  EXPECT_EQ(pinned->dl_tensor.device.device_type, 3);
  const auto mapped = Export(wrap(Device::Cpu(), MemoryKind::kMappedFile));
  EXPECT_EQ(mapped->dl_tensor.device.device_type, 1);
  EXPECT_THAT(ToDLPack(wrap(Device::Fake(1), MemoryKind::kDevice)),
              IsInvalidArgument("device: got fake:1, want cpu or cuda:N"));
}

TEST(DLPackExportTest, NoTensorIsRefused) {
  EXPECT_THAT(ToDLPack(Tensor()), IsInvalidArgument("without a buffer"));
  EXPECT_THAT(ToDLPackVersioned(Tensor()), IsInvalidArgument());
}

TEST(DLPackExportTest, BytesLiveUntilTheDeleter) {
  for (const bool is_versioned : {false, true}) {
    bool freed = false;
    RILL_ASSERT_OK_AND_ASSIGN(
        Tensor tensor,
        Tensor::View(WrapCounted(24, &freed), DType::kFloat32, {6}, 0));
    Handed<DLManagedTensor> plain;
    Handed<DLManagedTensorVersioned> versioned;
    if (is_versioned) {
      versioned = ExportVersioned(tensor);
    } else {
      plain = Export(tensor);
    }
    tensor = Tensor();
    EXPECT_FALSE(freed);
    plain.reset();
    versioned.reset();
    EXPECT_TRUE(freed);
  }
}

// A consumer that follows the structure's own rules reads what Tensor reads.
TEST(DLPackExportTest, RandomViewsReadTheSame) {
  const Rng rng(/*seed=*/11);
  for (uint64_t round = 0; round < 300; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    Tensor view = Iota<int32_t>({pick(4) + 1, pick(5) + 1, pick(6) + 1});
    for (int step = 0; step < 4; ++step) {
      const int d = static_cast<int>(pick(3));
      const int64_t begin = pick(view.shape()[d]);
      view = pick(2) == 0 ? *view.Permute({d, (d + 1) % 3, (d + 2) % 3})
                          : *view.Slice(d, begin, view.shape()[d], pick(3) + 1);
    }
    const auto managed = Export(view);
    const DLTensor& t = managed->dl_tensor;
    const Tensor want = *view.Contiguous();
    int64_t at = 0;
    for (int64_t i = 0; i < t.shape[0]; ++i) {
      for (int64_t j = 0; j < t.shape[1]; ++j) {
        for (int64_t k = 0; k < t.shape[2]; ++k) {
          ASSERT_EQ(static_cast<int32_t*>(
                        t.data)[i * t.strides[0] + j * t.strides[1] +
                                k * t.strides[2]],
                    want.data<int32_t>()[at++]);
        }
      }
    }
    ASSERT_EQ(at, want.num_elements());
  }
}

}  // namespace
}  // namespace rill
