// SPDX-License-Identifier: Apache-2.0
#include "rill/tensors/tensor.h"

#include <complex>
#include <cstdint>
#include <limits>
#include <sstream>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"  // Device::Fake().
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

absl::StatusOr<Tensor> RunExample() {
  RILL_ASSIGN_OR_RETURN(Tensor t, Tensor::Zeros(DType::kFloat32, {2, 3}));
  t.data<float>()[4] = 1.5f;
  RILL_ASSIGN_OR_RETURN(Tensor row, t.Index(1));  // shape [3], same bytes
  return row;
}

TEST(TensorFromTest, FlagsOfAVectorAndOfLists) {
  const std::vector<bool> flags = {true, false, false, true};
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor of_vector,
                            Tensor::From(flags, {4, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor of_list,
                            Tensor::From({true, false, false, true}, {4, 1}));
  EXPECT_EQ(of_vector.dtype(), DType::kBool);
  EXPECT_EQ(of_vector.shape(), Shape({4, 1}));
  EXPECT_THAT(*of_vector.Flat<bool>(), ElementsAre(true, false, false, true));
  EXPECT_THAT(of_vector.BitEquals(of_list), IsOkAndHolds(true));
  EXPECT_THAT(Tensor::From(flags, {3}), IsInvalidArgument("got 4, want 3"));
}

TEST(TensorFromTest, ValuesOfVectorsAndOfLists) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor floats,
                            Tensor::From({1.5f, 2.5f}, {2}));
  EXPECT_THAT(*floats.Flat<float>(), ElementsAre(1.5f, 2.5f));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor numbers,
                            Tensor::From(std::vector<int64_t>{3, 4}, {2, 1}));
  EXPECT_THAT(*numbers.Flat<int64_t>(), ElementsAre(3, 4));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor none, Tensor::From<float>({}, {0}));
  EXPECT_EQ(none.num_elements(), 0);
}

TEST(TensorTest, Example) {
  EXPECT_THAT(RunExample(), IsOkAndHolds(TensorElementsAre<float>(0, 1.5, 0)));
}

TEST(TensorTest, DefaultIsInvalidAndHarmless) {
  const Tensor t;
  EXPECT_FALSE(t.is_valid());
  EXPECT_EQ(t.shape(), Shape({0}));
  EXPECT_EQ(t.size_bytes(), 0);
  EXPECT_FALSE(t.is_writable());
  EXPECT_EQ(t.device(), Device::Cpu());
  EXPECT_THAT(t.Flat<float>(), IsOk());
  EXPECT_THAT(t.Clone(), IsOk());
  EXPECT_THAT(t.Pin(Device::Fake()), IsOk());
  EXPECT_THAT(t.BitEquals(Tensor()), IsOkAndHolds(true));
  EXPECT_EQ(t.DebugString(), "float32[0] cpu {}");
}

TEST(TensorTest, EmptyIsAlignedContiguousAndWritable) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t,
                            Tensor::Empty(DType::kInt16, {3, 5}));
  EXPECT_TRUE(t.is_valid());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw_data()) % 64, 0);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(t.is_writable());
  EXPECT_TRUE(t.is_host());
  EXPECT_EQ(t.memory_kind(), MemoryKind::kPageable);
  EXPECT_EQ(t.size_bytes(), 30);
  EXPECT_THAT(t.strides_bytes(), ElementsAre(10, 2));
}

TEST(TensorTest, ZerosAreZero) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor t,
                            Tensor::Zeros(DType::kComplex128, {17}));
  RILL_ASSERT_OK_AND_ASSIGN(auto values, t.Flat<std::complex<double>>());
  EXPECT_THAT(values, Each(std::complex<double>(0, 0)));
}

TEST(TensorTest, ShapesWithoutElementsAndOfRankZeroWork) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor none,
                            Tensor::Empty(DType::kFloat32, {0, 3}));
  EXPECT_TRUE(none.is_valid());
  EXPECT_TRUE(none.is_contiguous());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor one, Tensor::Zeros(DType::kInt32, {}));
  EXPECT_EQ(one.num_elements(), 1);
  EXPECT_THAT(one.Item<int32_t>(), IsOkAndHolds(0));
}

TEST(TensorTest, SizesThatOverflowAreRefused) {
  for (const Shape& shape :
       {Shape({kMax}), Shape({kMax / 4}), Shape({int64_t{1} << 40, 1 << 22}),
        Shape({0, kMax, kMax})}) {
    EXPECT_THAT(Tensor::Empty(DType::kFloat64, shape),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(shape.ToString()),
                               HasSubstr("do not fit in int64"))))
        << shape;
  }
}

TEST(TensorTest, LackOfMemoryIsAStatus) {
  const ScopedFaultHook hook([](absl::string_view, absl::string_view) {
    return absl::ResourceExhaustedError("planted");
  });
  EXPECT_THAT(Tensor::Empty(DType::kFloat32, {16}), IsResourceExhausted());
}

TEST(TensorTest, FromCopiesValues) {
  std::vector<int32_t> values = {1, 2, 3, 4};
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor t, Tensor::From(absl::Span<const int32_t>(values), {2, 2}));
  values[0] = 9;
  EXPECT_THAT(t, TensorElementsAre<int32_t>(1, 2, 3, 4));
  EXPECT_THAT(Tensor::From(absl::Span<const int32_t>(values), {3}),
              IsInvalidArgument("got 4, want 3"));
}

TEST(TensorTest, CopiesShareBytes) {
  const Tensor a = Iota<float>({3});
  const Tensor b = a;
  b.data<float>()[1] = 7;
  EXPECT_THAT(a, TensorElementsAre<float>(0, 7, 2));
}

TEST(TensorTest, BytesLiveAsLongAsAView) {
  Tensor row;
  {
    const Tensor t = Iota<int64_t>({4, 2});
    row = *t.Index(3);
  }
  EXPECT_THAT(row, TensorElementsAre<int64_t>(6, 7));
}

TEST(TensorTest, ViewSharesAForeignBuffer) {
  std::vector<float> bytes = {0, 1, 2, 3, 4, 5};
  auto buffer = Buffer::Wrap(bytes.data(), 24, Device::Cpu(),
                             MemoryKind::kPageable, nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor backwards,
      Tensor::View(buffer, DType::kFloat32, {3}, 20, {-8}));
  EXPECT_THAT(backwards, TensorElementsAre<float>(5, 3, 1));
  EXPECT_FALSE(backwards.is_contiguous());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor tail,
                            Tensor::View(buffer, DType::kFloat32, {2, 2}, 8));
  EXPECT_THAT(tail, TensorElementsAre<float>(2, 3, 4, 5));
}

TEST(TensorTest, ViewStaysInsideTheBuffer) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, Buffer::Allocate(24));
  const auto view = [&](Shape shape, int64_t offset,
                        std::vector<int64_t> strides) {
    return Tensor::View(buffer, DType::kFloat32, shape, offset, strides);
  };
  EXPECT_THAT(view({6}, 0, {4}), IsOk());
  EXPECT_THAT(view({2, 3}, 0, {0, 4}), IsOk());
  EXPECT_THAT(view({0, 3}, 24, {kMax, kMax}), IsOk());
  EXPECT_THAT(view({6}, 4, {4}), IsInvalidArgument("[0, 24)"));
  EXPECT_THAT(view({2}, 0, {-4}), IsInvalidArgument());
  EXPECT_THAT(view({1}, 24, {4}), IsInvalidArgument());
  EXPECT_THAT(view({1}, -4, {4}), IsInvalidArgument());
  EXPECT_THAT(view({3}, 0, {kMax}), IsInvalidArgument("past int64"));
  EXPECT_THAT(view({2, 2}, 0, {4}), IsInvalidArgument("got 1, want 2"));
  EXPECT_THAT(Tensor::View(nullptr, DType::kFloat32, {1}, 0),
              IsInvalidArgument());
}

TEST(TensorTest, ViewRefusesUnalignedElements) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, Buffer::Allocate(64));
  EXPECT_THAT(Tensor::View(buffer, DType::kFloat32, {2}, 2),
              IsInvalidArgument("multiples of 4"));
  EXPECT_THAT(Tensor::View(buffer, DType::kFloat64, {2}, 0, {12}),
              IsInvalidArgument("multiples of 8"));
  EXPECT_THAT(Tensor::View(buffer, DType::kComplex64, {2}, 4), IsOk());
  EXPECT_THAT(Tensor::View(buffer, DType::kBool, {2}, 3), IsOk());
}

TEST(TensorTest, FlatChecksTypeLayoutAndPlace) {
  const Tensor t = Iota<float>({2, 3});
  RILL_ASSERT_OK_AND_ASSIGN(auto flat, t.Flat<float>());
  EXPECT_EQ(flat.data(), t.data<float>());
  EXPECT_EQ(flat.size(), 6);
  EXPECT_THAT(t.Flat<int32_t>(), IsInvalidArgument("got int32, want float32"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned, t.Permute({1, 0}));
  EXPECT_THAT(turned.Flat<float>(), IsFailedPrecondition("Contiguous()"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there, t.To(Device::Fake()));
  EXPECT_THAT(there.Flat<float>(), IsFailedPrecondition("fake:0"));
}

TEST(TensorTest, ItemWantsOneElement) {
  EXPECT_THAT(MakeTensor<double>({2.5}, {1, 1}).Item<double>(),
              IsOkAndHolds(2.5));
  EXPECT_THAT(Iota<double>({2}).Item<double>(),
              IsInvalidArgument("got 2, want 1"));
  EXPECT_THAT(Iota<double>({1}).Item<float>(), IsInvalidArgument());
}

TEST(TensorTest, DebugStringShowsLayoutPlaceAndValues) {
  EXPECT_EQ(MakeTensor<float>({1, 2.5, 0.1f}, {1, 3}).DebugString(),
            "float32[1, 3] cpu {1, 2.5, 0.1}");
  EXPECT_EQ(MakeTensor<bool>({true, false}, {2}).DebugString(),
            "bool[2] cpu {true, false}");
  EXPECT_EQ(MakeTensor<int8_t>({-3}, {}).DebugString(), "int8[] cpu {-3}");
  EXPECT_EQ(MakeTensor<BFloat16>({{0x3fc0}}, {1}).DebugString(),
            "bfloat16[1] cpu {1.5}");
  EXPECT_EQ(MakeTensor<std::complex<float>>({{1, -2}}, {1}).DebugString(),
            "complex64[1] cpu {(1, -2)}");
  EXPECT_EQ(MakeTensor<uint64_t>({~uint64_t{0}}, {1}).DebugString(),
            "uint64[1] cpu {18446744073709551615}");
}

TEST(TensorTest, DebugStringShortensAndReadsStridesAndDevices) {
  EXPECT_EQ(Iota<int32_t>({100}).DebugString(),
            "int32[100] cpu {0, 1, 2, 3, 4, 5, ..., 94, 95, 96, 97, 98, 99}");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor turned,
                            Iota<int32_t>({2, 2}).Permute({1, 0}));
  EXPECT_EQ(turned.DebugString(), "int32[2, 2] cpu {0, 2, 1, 3}");
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there,
                            Iota<int32_t>({2}).To(Device::Fake()));
  EXPECT_EQ(there.DebugString(), "int32[2] fake:0 {0, 1}");
  std::ostringstream os;
  os << there;
  EXPECT_EQ(os.str(), there.DebugString());
}

}  // namespace
}  // namespace rill
