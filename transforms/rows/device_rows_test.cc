// SPDX-License-Identifier: Apache-2.0
// Rows on a device are mapped as those of the host are: on the fake device and
// on a GPU.
#include "rill/transforms/rows/device_rows.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/device_agreement.h"
#include "rill/transforms/rows/element_kernels.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {
namespace {

using Kind = RowStep::Kind;

// Small and large numbers of any sign, zeros and infinities.
double AnyNumber(const Rng& rng, uint32_t i) {
  switch (rng.UniformInt(0, i, 8)) {
    case 0:
      return i % 2 == 0 ? 0.0 : -0.0;
    case 1:
      return (i % 2 == 0 ? 1 : -1) * std::numeric_limits<double>::infinity();
    case 2:
      return std::ldexp(rng.UniformDouble(1, i) - 0.5,
                        static_cast<int>(rng.UniformInt(2, i, 120)) - 60);
    default:
      return static_cast<double>(rng.UniformInt(1, i, 600)) / 2 - 150;
  }
}

template <typename T>
void Fill(const Rng& rng, const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<T>()[i] =
        static_cast<T>(AnyNumber(rng, static_cast<uint32_t>(i)));
  }
}

// Floats by way of a cast, all else by random bits.
Tensor AnyTensor(DType dtype, const Shape& shape, uint64_t seed) {
  const Rng rng(seed);
  const Tensor tensor = *Tensor::Empty(dtype, shape);
  if (dtype == DType::kFloat32) Fill<float>(rng, tensor);
  if (dtype == DType::kFloat64) Fill<double>(rng, tensor);
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    return *Cast(AnyTensor(DType::kFloat32, shape, seed), dtype);
  }
  if (IsFloatingPoint(dtype)) return tensor;
  for (int64_t i = 0; i < tensor.size_bytes(); ++i) {
    tensor.data<uint8_t>()[i] =
        static_cast<uint8_t>(rng.Bits64(0, static_cast<uint32_t>(i)));
    if (dtype == DType::kBool) tensor.data<uint8_t>()[i] &= 1;
  }
  return tensor;
}

TensorDict BatchOf(const Tensor& leaf, const Shape& batch) {
  TensorDict dict(batch);
  RILL_EXPECT_OK(dict.Set("x", leaf));
  return dict;
}

// `map` on leaves that are mapped in place, to another key, and before a write.
void ExpectSame(std::shared_ptr<const RowMap> map, const TensorDict& batch) {
  const auto same = *RowwiseTransform::Make(
      "Same",
      {.map = map, .in_keys = {"x"}, .inverse = map, .in_keys_inv = {"x"}});
  const auto other = *RowwiseTransform::Make(
      "Other", {.map = map, .in_keys = {"x"}, .out_keys = {"y"}});
  ExpectSameOnDevice(*same, TransformCall::kForward, batch, DeviceUnderTest());
  ExpectSameOnDevice(*same, TransformCall::kInverse, batch, DeviceUnderTest());
  ExpectSameOnDevice(*other, TransformCall::kForward, batch, DeviceUnderTest());
}

void ExpectSame(const RowStep& step, const TensorDict& batch) {
  ExpectSame(*MakeRowStep(step), batch);
}

constexpr DType kArithmetic[] = {
    DType::kBool,    DType::kUInt8,   DType::kInt8,    DType::kInt16,
    DType::kInt32,   DType::kInt64,   DType::kFloat16, DType::kBFloat16,
    DType::kFloat32, DType::kFloat64,
};

TEST(DeviceRowsTest, CastsAreThoseOfTheHost) {
  for (const DType from : kArithmetic) {
    const TensorDict batch = BatchOf(AnyTensor(from, {7, 33}, 1), {7});
    for (const DType to : kArithmetic) {
      SCOPED_TRACE(absl::StrCat(DTypeName(from), " to ", DTypeName(to)));
      ExpectSame({.kind = Kind::kCast, .dtype = to}, batch);
    }
  }
}

TEST(DeviceRowsTest, ArithmeticIsThatOfTheHost) {
  uint64_t seed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : {Shape({5, 3}), Shape({0, 3}), Shape({300, 3})}) {
      const TensorDict batch =
          BatchOf(AnyTensor(dtype, shape, ++seed), shape.Prefix(1));
      for (const Kind kind : {Kind::kScaleThenShift, Kind::kShiftThenDivide}) {
        ExpectSame({.kind = kind, .scale = {0.3}, .loc = {-1.7}}, batch);
        ExpectSame({.kind = kind, .scale = {0.3, -7, 1e-3}, .loc = {0.1}},
                   batch);
        ExpectSame({.kind = kind, .scale = {3}, .loc = {0.1, 5, -1e7}}, batch);
        ExpectSame(
            {.kind = kind, .scale = {0.3, -7, 1e-3}, .loc = {0.1, 5, -1e7}},
            batch);
      }
      ExpectSame({.kind = Kind::kIsPositive}, batch);
    }
  }
  ExpectSame({.kind = Kind::kUnitInterval},
             BatchOf(AnyTensor(DType::kUInt8, {2, 256}, 3), {2}));
}

TEST(DeviceRowsTest, ClipsAndSignsAreThoseOfTheHost) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : kArithmetic) {
    if (dtype == DType::kBool || DTypeSize(dtype) == 2) continue;
    const Tensor leaf = AnyTensor(dtype, {4, 50}, 2);
    // A NaN stays as it is.
    if (dtype == DType::kFloat32) leaf.data<float>()[0] = NAN;
    if (dtype == DType::kFloat64) leaf.data<double>()[0] = -NAN;
    const TensorDict batch = BatchOf(leaf, {4});
    ExpectSame({.kind = Kind::kSign}, batch);
    ExpectSame({.kind = Kind::kClip, .low = -0.5, .high = 1.5}, batch);
    ExpectSame({.kind = Kind::kClip, .low = -1e30, .high = 100.7}, batch);
    ExpectSame({.kind = Kind::kClip, .low = 3, .high = inf}, batch);
  }
}

TEST(DeviceRowsTest, ElementsOfAnyDtypeAreMoved) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    Tensor leaf = *Tensor::Empty(dtype, {3, 2, 3, 4, 5});
    for (int64_t byte = 0; byte < leaf.size_bytes(); ++byte) {
      leaf.raw_data()[byte] = static_cast<std::byte>(byte % 2);
    }
    for (const TensorDict& batch :
         {BatchOf(leaf, {3}), BatchOf(leaf, {3, 2})}) {
      ExpectSame({.kind = Kind::kChannelsFirst}, batch);
      ExpectSame(
          {.kind = Kind::kCrop, .top = 1, .left = 1, .height = 2, .width = 2},
          batch);
      ExpectSame(MakeReshape([](const LeafSpec& rows) {
                   return absl::StatusOr<LeafSpec>(LeafSpec::Unbounded(
                       rows.dtype, {rows.shape.num_elements()}));
                 }),
                 batch);
    }
  }
}

// Several maps of one leaf: views before and behind arithmetic.
class Chain final : public RowMap {
 public:
  explicit Chain(std::vector<std::shared_ptr<const RowMap>> maps)
      : maps_(std::move(maps)) {}
  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    LeafSpec after = leaf;
    for (const auto& map : maps_) after = *map->MapSpec(after);
    return after;
  }
  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    LeafSpec leaf = LeafSpec::Unbounded(dtype, shape);
    std::vector<std::byte> rows(
        from, from + count * shape.num_elements() * DTypeSize(dtype));
    for (const auto& map : maps_) {
      const LeafSpec after = *map->MapSpec(leaf);
      std::vector<std::byte> made(static_cast<size_t>(
          count * after.shape.num_elements() * DTypeSize(after.dtype)));
      RILL_EXPECT_OK(map->MapRows(leaf.dtype, leaf.shape, count, rows.data(),
                                  made.data()));
      rows = std::move(made);
      leaf = after;
    }
    std::memcpy(to, rows.data(), rows.size());
    return absl::OkStatus();
  }
  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    for (const auto& map : maps_) {
      const absl::Status status = map->MapOnDevice(rows);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::shared_ptr<const RowMap>> maps_;
};

TEST(DeviceRowsTest, MapsFollowOneAnother) {
  const auto step = [](const RowStep& of) { return *MakeRowStep(of); };
  const auto flat = MakeReshape([](const LeafSpec& rows) {
    return absl::StatusOr<LeafSpec>(
        LeafSpec::Unbounded(rows.dtype, {rows.shape.num_elements()}));
  });
  std::vector<double> numbers;
  for (int i = 0; i < 3 * 2 * 3; ++i) numbers.push_back(0.1 * i + 1);
  const RowStep crop = {
      .kind = Kind::kCrop, .top = 2, .left = 0, .height = 2, .width = 3};
  const TensorDict batch =
      BatchOf(AnyTensor(DType::kUInt8, {6, 5, 4, 3}, 9), {6});
  ExpectSame(std::make_shared<Chain>(std::vector<std::shared_ptr<const RowMap>>{
                 step({.kind = Kind::kUnitInterval}),
                 step({.kind = Kind::kChannelsFirst}), step(crop),
                 step({.scale = numbers, .loc = {1}}),
                 // Which number an element has is no matter of later views.
                 step({.kind = Kind::kChannelsFirst}), flat,
                 step({.kind = Kind::kClip, .low = 0, .high = 2}),
                 step({.kind = Kind::kCast, .dtype = DType::kBFloat16})}),
             batch);
  // More steps than a launch takes.
  std::vector<std::shared_ptr<const RowMap>> many;
  many.push_back(step({.kind = Kind::kUnitInterval}));
  for (int i = 0; i < 50; ++i) {
    many.push_back(step({.scale = {i % 2 == 0 ? 2.0 : 0.5}, .loc = {0.1}}));
  }
  ExpectSame(std::make_shared<Chain>(many), batch);
}

TEST(DeviceRowsTest, ManyLeavesGoInSeveralLaunches) {
  TensorDict batch({4});
  std::vector<std::string> keys;
  for (int i = 0; i < 35; ++i) {
    keys.push_back(absl::StrCat("leaf", i));
    RILL_ASSERT_OK(batch.Set(
        keys.back(), AnyTensor(DType::kFloat32, {4, i + 1}, uint64_t(i))));
  }
  const auto cast = *RowwiseTransform::Make(
      "Cast",
      {.map = *MakeRowStep({.kind = Kind::kCast, .dtype = DType::kFloat16}),
       .in_keys = keys});
  ExpectSameOnDevice(*cast, TransformCall::kForward, batch, DeviceUnderTest());
}

TEST(DeviceRowsTest, StridedLeavesBecomeContiguous) {
  const Tensor whole = AnyTensor(DType::kFloat32, {6, 8}, 4);
  const auto map = *MakeRowStep({.scale = {2}, .loc = {1}});
  const auto transform =
      *RowwiseTransform::Make("Scale", {.map = map, .in_keys = {"x"}});
  for (const Tensor& view : {*whole.Slice(1, 1, 8, 3), *whole.Permute({1, 0}),
                             *whole.Slice(0, 1, 5)}) {
    TensorDict want = BatchOf(view, view.shape().Prefix(1));
    RILL_ASSERT_OK(want.Set("x", *view.Clone()));
    RILL_ASSERT_OK(transform->Forward(&want, nullptr));
    // The same view of a copy on the device.
    const Tensor there = *whole.To(DeviceUnderTest());
    TensorDict got(view.shape().Prefix(1));
    RILL_ASSERT_OK(got.Set(
        "x", *Tensor::View(there.buffer(), DType::kFloat32, view.shape(),
                           view.raw_data() - whole.raw_data(),
                           view.strides_bytes())));
    RILL_ASSERT_OK(transform->Forward(&got, nullptr));
    EXPECT_TRUE(got.Find("x")->is_contiguous());
    RILL_EXPECT_OK(got.To(Device::Cpu())->CheckEqual(want));
  }
}

TEST(DeviceRowsTest, ThreadsShareNoElement) {
  using transforms_internal::ElementCopyKernel;
  const Tensor from = AnyTensor(DType::kInt16, {300, 7}, 8);
  const Tensor to = *Tensor::Empty(DType::kFloat32, {7, 300});
  ElementCopyKernel kernel;
  kernel.copies[0] = {.from = from.raw_data(),
                      .to = to.raw_data(),
                      .from_bytes = from.size_bytes(),
                      .to_bytes = to.size_bytes(),
                      .end = 2100,
                      .sizes = {7, 300},
                      .from_strides = {1, 7},
                      .to_strides = {300, 1},
                      .rank = 2,
                      .num_steps = 1};
  kernel.steps[0] = {.type = transforms_internal::ElementType::kInt16};
  kernel.elements = 2100;
  kernel.num_copies = kernel.num_steps = 1;
  RunGridOnThreads(kernel, {.blocks = 5, .threads = 32});
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(to.data<float>()[i], from.data<int16_t>()[7 * i]);
  }
}

}  // namespace
}  // namespace rill
