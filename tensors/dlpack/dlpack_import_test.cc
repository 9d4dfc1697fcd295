// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// A producer: 24 floats of its own, and how often its deleter was called.
template <typename Managed>
struct Producer {
  Producer() {
    std::iota(values.begin(), values.end(), 0.0f);
    managed.dl_tensor = {.data = values.data(),
                         .device = {kDLCPU, 0},
                         .ndim = 2,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = shape.data(),
                         .strides = nullptr,
                         .byte_offset = 0};
    managed.manager_ctx = &deleted;
    managed.deleter = [](Managed* self) {
      ++*static_cast<int*>(self->manager_ctx);
    };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
      managed.version = {1, 0};
    }
  }

  DLTensor& tensor() { return managed.dl_tensor; }
  absl::StatusOr<Tensor> Import() { return FromDLPack(&managed); }

  std::vector<float> values = std::vector<float>(24);
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  Managed managed = {};
  int deleted = 0;
};
using Plain = Producer<DLManagedTensor>;
using Versioned = Producer<DLManagedTensorVersioned>;

TEST(DLPackImportTest, SharesTheBytesAndDeletesOnce) {
  Plain producer;
  {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor, producer.Import());
    EXPECT_THAT(tensor, TensorIs(DType::kFloat32, {2, 3}));
    EXPECT_EQ(tensor.raw_data(),
              reinterpret_cast<std::byte*>(producer.values.data()));
    EXPECT_TRUE(tensor.is_writable());
    EXPECT_TRUE(tensor.device().is_cpu());
    EXPECT_EQ(tensor.memory_kind(), MemoryKind::kPageable);
    producer.values[5] = 50;
    EXPECT_THAT(tensor, TensorElementsAre<float>(0, 1, 2, 3, 4, 50));
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPackImportTest, TheLastViewDeletes) {
  Versioned producer;
  std::optional<Tensor> row;
  {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor, producer.Import());
    const Tensor copy = tensor;
    row = *copy.Index(1);
  }
  EXPECT_EQ(producer.deleted, 0);
  EXPECT_THAT(*row, TensorElementsAre<float>(3, 4, 5));
  row.reset();
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPackImportTest, ANullDeleterHasNothingToFree) {
  Plain producer;
  producer.managed.deleter = nullptr;
  RILL_EXPECT_OK(producer.Import().status());
  producer.tensor().ndim = -1;
  EXPECT_THAT(producer.Import(), IsInvalidArgument());
}

TEST(DLPackImportTest, NullIsRefused) {
  EXPECT_THAT(FromDLPack(static_cast<DLManagedTensor*>(nullptr)),
              IsInvalidArgument());
  EXPECT_THAT(FromDLPack(static_cast<DLManagedTensorVersioned*>(nullptr)),
              IsInvalidArgument());
}

TEST(DLPackImportTest, StridesAndByteOffsetAreInTheirUnits) {
  Plain producer;
  producer.strides = {-6, 2};
  producer.tensor().strides = producer.strides.data();
  producer.tensor().byte_offset = 4 * 7;
  EXPECT_THAT(producer.Import(),
              IsOkAndHolds(TensorElementsAre<float>(7, 9, 11, 1, 3, 5)));
}

TEST(DLPackImportTest, StridesOfSingleElementsSayNothing) {
  Plain producer;
  producer.shape = {1, 3};
  producer.strides = {kMin, 1};
  producer.tensor().strides = producer.strides.data();
  EXPECT_THAT(producer.Import(),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 2)));
}

TEST(DLPackImportTest, NoElementsNeedNoData) {
  Versioned producer;
  producer.shape = {0, 3};
  producer.strides = {kMax, kMin};
  producer.tensor().strides = producer.strides.data();
  producer.tensor().data = nullptr;
  producer.tensor().byte_offset = std::numeric_limits<uint64_t>::max();
  {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor none, producer.Import());
    EXPECT_THAT(none, TensorIs(DType::kFloat32, {0, 3}));
    EXPECT_TRUE(none.is_valid());
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPackImportTest, RankZeroNeedsNoShape) {
  Plain producer;
  producer.tensor().ndim = 0;
  producer.tensor().shape = nullptr;
  producer.tensor().byte_offset = 8;
  EXPECT_THAT(producer.Import(), IsOkAndHolds(TensorElementsAre<float>(2)));
}

TEST(DLPackImportTest, FlagsOfTheVersionedForm) {
  Versioned producer;
  producer.managed.flags = kDLPackFlagReadOnly | kDLPackFlagIsCopied;
  RILL_ASSERT_OK_AND_ASSIGN(Tensor tensor, producer.Import());
  EXPECT_FALSE(tensor.is_writable());
  producer.managed.flags = kDLPackFlagIsCopied | uint64_t{1} << 40;
  RILL_ASSERT_OK_AND_ASSIGN(tensor, producer.Import());
  EXPECT_TRUE(tensor.is_writable());
}

TEST(DLPackImportTest, OtherMajorVersionsAreGivenBack) {
  for (const uint32_t major : {0u, 2u}) {
    Versioned producer;
    producer.managed.version = {major, 3};
    EXPECT_THAT(producer.Import(), IsInvalidArgument(".3, want 1.x"));
    EXPECT_EQ(producer.deleted, 1);
  }
  Versioned newer;
  newer.managed.version = {1, 99};
  RILL_EXPECT_OK(newer.Import().status());
}

TEST(DLPackImportTest, DevicesAreMapped) {
  Plain producer;
  producer.tensor().device = {kDLCUDA, 3};
  RILL_ASSERT_OK_AND_ASSIGN(Tensor tensor, producer.Import());
  EXPECT_EQ(tensor.device(), Device::Cuda(3));
  EXPECT_FALSE(tensor.is_host());
  producer.tensor().device = {kDLCUDAHost, 3};
  RILL_ASSERT_OK_AND_ASSIGN(tensor, producer.Import());
  EXPECT_TRUE(tensor.device().is_cpu());
  EXPECT_TRUE(tensor.is_pinned());
}

TEST(DLPackImportTest, WhatIsRefusedIsNamedAndGivenBack) {
  struct Case {
    std::string want;
    std::function<void(Plain*)> spoil;
  };
  const Case cases[] = {
      {"ndim: got -1, want [0, 8]", [](Plain* p) { p->tensor().ndim = -1; }},
      {"ndim: got 9, want [0, 8]", [](Plain* p) { p->tensor().ndim = 9; }},
      {"shape: got null", [](Plain* p) { p->tensor().shape = nullptr; }},
      {"data of float32[2, 3]: got null",
       [](Plain* p) { p->tensor().data = nullptr; }},
      {"-3", [](Plain* p) { p->shape[1] = -3; }},
      {"lanes of float32: got 4, want 1",
       [](Plain* p) { p->tensor().dtype.lanes = 4; }},
      {"lanes of float32: got 0, want 1",
       [](Plain* p) { p->tensor().dtype.lanes = 0; }},
      {"dtype: got float128, want one of bool",
       [](Plain* p) { p->tensor().dtype.bits = 128; }},
      {"dtype: got int4,",
       [](Plain* p) {
         p->tensor().dtype = {kDLInt, 4, 1};
       }},
      {"dtype: got complex32,",
       [](Plain* p) {
         p->tensor().dtype = {kDLComplex, 32, 1};
       }},
      {"dtype: got opaque handle64,",
       [](Plain* p) {
         p->tensor().dtype = {kDLOpaqueHandle, 64, 1};
       }},
      {"dtype: got float8_e4m3fn,",
       [](Plain* p) {
         p->tensor().dtype = {kDLFloat8_e4m3fn, 8, 1};
       }},
      {"dtype: got float4_e2m1fn,",
       [](Plain* p) {
         p->tensor().dtype = {kDLFloat4_e2m1fn, 4, 1};
       }},
      {"dtype: got type code 200 of 8 bits,",
       [](Plain* p) {
         p->tensor().dtype = {200, 8, 1};
       }},
      {"device: got type 10 index 0",
       [](Plain* p) {
         p->tensor().device = {kDLROCM, 0};
       }},
      {"device: got type 2 index -1",
       [](Plain* p) {
         p->tensor().device = {kDLCUDA, -1};
       }},
      {"device: got type 77",
       [](Plain* p) {
         p->tensor().device.device_type = static_cast<DLDeviceType>(77);
       }},
      {"address of float32[2, 3]: got one that is 2 past a multiple of 4",
       [](Plain* p) { p->tensor().byte_offset = 2; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    Plain producer;
    c.spoil(&producer);
    EXPECT_THAT(producer.Import(), IsInvalidArgument(c.want));
    EXPECT_EQ(producer.deleted, 1);
  }
}

TEST(DLPackImportTest, ElementsPastTheAddressSpaceAreRefused) {
  struct Case {
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    uint64_t offset = 0;
  };
  const Case cases[] = {
      {{2, 3}, {kMax, 1}},             // Byte stride.
      {{2, 3}, {kMin, 1}},             // The same, down.
      {{kMax / 8, 2}, {1, kMax / 4}},  // The sum.
      {{3, 3}, {kMin / 8, 1}},         // Below address 0.
      {{3, 1}, {-(int64_t{1} << 60), 1}},
      {{2, 3}, {3, 1}, ~uint64_t{0} - 3},  // The offset wraps.
      {{kMax, kMax}, {0, 0}},              // The number of elements.
      {{kMax / 2, 1}, {0, 0}},             // Their bytes.
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.shape));
    Plain producer;
    producer.shape = c.shape;
    producer.strides = c.strides;
    producer.tensor().strides = producer.strides.data();
    producer.tensor().byte_offset = c.offset;
    EXPECT_THAT(producer.Import(), IsInvalidArgument());
    EXPECT_EQ(producer.deleted, 1);
  }
}

TEST(DLPackImportTest, ComplexNumbersNeedTheAlignmentOfTheirParts) {
  Plain producer;
  producer.tensor().dtype = {kDLComplex, 64, 1};
  producer.tensor().byte_offset = 4;
  RILL_EXPECT_OK(producer.Import().status());
  producer.tensor().byte_offset = 2;
  EXPECT_THAT(producer.Import(), IsInvalidArgument());
}

// Shapes, strides of both signs and offsets against plain index arithmetic.
TEST(DLPackImportTest, RandomLayoutsReadWhatTheyName) {
  const Rng rng(/*seed=*/12);
  for (uint64_t round = 0; round < 500; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t low, int64_t high) {
      return low + rng.UniformInt(round, draw++, high - low + 1);
    };
    Plain producer;
    producer.values.resize(200);
    std::iota(producer.values.begin(), producer.values.end(), 0.0f);
    producer.shape = {pick(1, 3), pick(1, 3), pick(1, 4)};
    producer.strides = {pick(-12, 12), pick(-12, 12), pick(-12, 12)};
    const int64_t first = pick(90, 110);  // 90 = 2 * 12 + 2 * 12 + 3 * 12 + 6.
    producer.tensor().ndim = 3;
    producer.tensor().shape = producer.shape.data();
    producer.tensor().strides = producer.strides.data();
    producer.tensor().data = producer.values.data();
    producer.tensor().byte_offset = 4 * first;
    std::vector<float> want;
    for (int64_t i = 0; i < producer.shape[0]; ++i) {
      for (int64_t j = 0; j < producer.shape[1]; ++j) {
        for (int64_t k = 0; k < producer.shape[2]; ++k) {
          want.push_back(producer.values[first + i * producer.strides[0] +
                                         j * producer.strides[1] +
                                         k * producer.strides[2]]);
        }
      }
    }
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor tensor, producer.Import());
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor flat, tensor.Contiguous());
    RILL_ASSERT_OK_AND_ASSIGN(const auto got, flat.Flat<float>());
    ASSERT_THAT(got, ::testing::ElementsAreArray(want)) << "round " << round;
  }
}

}  // namespace
}  // namespace rill
