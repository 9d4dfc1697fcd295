// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/images/resize.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/peak_memory.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/images/axis_weights.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using transforms_internal::AxisWeights;
using transforms_internal::LinearWeights;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kNearest = Resize::Interpolation::kNearest;

TensorDictSpec PixelSpec(const LeafSpec& pixels) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("pixels", pixels));
  RILL_EXPECT_OK(spec.Set("next/pixels", pixels));
  return spec;
}

// The pixels [rows, ...] resized.
Tensor Map(const Resize::Options& options, const Tensor& pixels) {
  const auto resize = Resize::Create(options);
  RILL_EXPECT_OK(resize);
  TensorDict batch({pixels.shape()[0]});
  RILL_EXPECT_OK(batch.Set("pixels", pixels));
  RILL_EXPECT_OK((*resize)->Forward(&batch, nullptr));
  return *batch.Get("pixels");
}

// One image of (37 y^2 + 101 x + 13 x y + 7) mod 256.
Tensor Pattern(int64_t height, int64_t width) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      pixels.push_back(
          static_cast<uint8_t>((37 * y * y + 101 * x + 13 * x * y + 7) % 256));
    }
  }
  return *Tensor::From<uint8_t>(pixels, {1, height, width});
}

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.Flat<float>();
  RILL_EXPECT_OK(flat);
  return {flat->begin(), flat->end()};
}

TEST(ResizeTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto resize, Resize::Create({.w = 84}));
  EXPECT_EQ(resize->name(), "Resize");
}

// Made of Pattern by torch 2.15: torch.nn.functional.interpolate(pattern,
// size=(h, w), mode="bilinear", align_corners=False, antialias=antialias).
struct Recorded {
  Shape from;
  Shape to;
  bool antialias;
  std::vector<float> pixels;
};

std::vector<Recorded> RecordedCases() {
  std::vector<Recorded> cases;
  cases.push_back(
      {{5, 7},
       {3, 2},
       true,
       {103.7874f, 116.9834f, 110.3282f, 112.7829f, 152.1595f, 129.887f}});
  cases.push_back(
      {{3, 4},
       {5, 7},
       true,
       {7.0f,   43.07143f, 100.7857f, 158.5f, 197.9285f, 109.3571f, 54.0f,
        21.8f,  59.72858f, 120.4143f, 129.9f, 128.4143f, 101.3286f, 84.4f,
        44.0f,  84.71429f, 149.8571f, 87.0f,  24.14288f, 89.28574f, 130.0f,
        110.6f, 99.24285f, 81.07141f, 88.5f,  95.92858f, 77.75713f, 66.39999f,
        155.0f, 108.9286f, 35.21428f, 89.5f,  143.7857f, 70.0714f,  24.0f}});
  cases.push_back(
      {{6, 5},
       {6, 2},
       true,
       {96.36365f, 123.8182f, 88.18182f, 141.6364f, 95.81819f, 93.81818f,
        154.1818f, 178.1818f, 158.5455f, 115.4545f, 143.8182f, 138.3636f}});
  cases.push_back(
      {{9, 3},
       {2, 3},
       true,
       {86.28168f, 136.338f, 128.7042f, 80.19717f, 166.676f, 177.4366f}});
  cases.push_back(
      {{2, 1000},
       {2, 5},
       true,
       {127.40189f, 127.56557f, 127.36398f, 127.57838f, 127.48428f, 126.93301f,
        127.18879f, 126.96805f, 126.87521f, 126.57877f}});
  cases.push_back(
      {{5, 7},
       {3, 2},
       false,
       {129.6667f, 71.66666f, 57.75f, 54.25f, 207.8333f, 88.16666f}});
  cases.push_back(
      {{3, 4},
       {5, 7},
       false,
       {7.0f,      43.07143f, 100.7857f, 158.5f,    197.9285f, 109.3571f,
        54.0f,     21.8f,     59.72857f, 120.4143f, 129.9f,    128.4143f,
        101.3286f, 84.40001f, 44.0f,     84.71429f, 149.8571f, 86.99998f,
        24.14288f, 89.28574f, 130.0f,    110.6f,    99.24286f, 81.07141f,
        88.5f,     95.92857f, 77.75713f, 66.39999f, 155.0f,    108.9286f,
        35.21428f, 89.50002f, 143.7857f, 70.0714f,  24.0f}});
  cases.push_back({{3, 1000},
                   {2, 7},
                   false,
                   {64.26767f, 95.4114f, 163.12605f, 153.125f, 101.98578f,
                    155.98082f, 63.700974f, 200.66098f, 151.23296f, 124.66228f,
                    116.375f, 66.950745f, 67.804092f, 210.37202f}});
  return cases;
}

TEST(ResizeTest, BilinearEqualsTorchTo1e6OfTheLargestPixel) {
  ForEachTarget([] {
    for (const Recorded& recorded : RecordedCases()) {
      const Tensor bytes = Pattern(recorded.from[0], recorded.from[1]);
      const Resize::Options options = {.w = recorded.to[1],
                                       .h = recorded.to[0],
                                       .antialias = recorded.antialias};
      const Tensor floats = Map(options, *Cast(bytes, DType::kFloat32));
      EXPECT_EQ(floats.shape(), Shape({1}).Concat(recorded.to));
      EXPECT_THAT(Floats(floats),
                  Pointwise(FloatNear(255e-6f), recorded.pixels));
      // Where half a pixel is left, which way is up to the last bits.
      const Tensor rounded = Map(options, bytes);
      EXPECT_THAT(Floats(*Cast(rounded, DType::kFloat32)),
                  Pointwise(FloatNear(0.5003f), recorded.pixels));
    }
  });
}

// The same with mode="nearest".
TEST(ResizeTest, NearestEqualsTorch) {
  EXPECT_THAT(Map({.w = 2, .h = 3, .interpolation = kNearest}, Pattern(5, 7))
                  .Flat<uint8_t>(),
              IsOkAndHolds(ElementsAreArray({7, 54, 44, 130, 84, 248})));
  const std::vector<double> want = {7,   7,   108, 108, 209, 209, 54,  7,   7,
                                    108, 108, 209, 209, 54,  44,  44,  158, 158,
                                    16,  16,  130, 44,  44,  158, 158, 16,  16,
                                    130, 155, 155, 26,  26,  153, 153, 24};
  const Tensor pattern = Pattern(3, 4);
  for (const DType dtype :
       {DType::kUInt8, DType::kInt16, DType::kFloat32, DType::kFloat64}) {
    const Tensor resized =
        Map({.w = 7, .h = 5, .interpolation = kNearest}, *Cast(pattern, dtype));
    EXPECT_EQ(resized.dtype(), dtype);
    EXPECT_THAT(Cast(resized, DType::kFloat64)->Flat<double>(),
                IsOkAndHolds(ElementsAreArray(want)));
  }
}

// One pixel, as the weights say.
double PixelOf(const float* image, const AxisWeights& rows,
               const AxisWeights& columns, int64_t y, int64_t x) {
  const auto row = static_cast<size_t>(y);
  const auto column = static_cast<size_t>(x);
  double sum = 0;
  for (int64_t i = 0; i < rows.count[row]; ++i) {
    for (int64_t k = 0; k < columns.count[column]; ++k) {
      sum += double{rows.weights[static_cast<size_t>(y * rows.taps + i)]} *
             columns.weights[static_cast<size_t>(x * columns.taps + k)] *
             image[(rows.first[row] + i) * columns.from +
                   columns.first[column] + k];
    }
  }
  return sum;
}

TEST(ResizeTest, HasTheSameBitsOnEveryInstructionSet) {
  const LeafSpec unit = LeafSpec::Bounded(DType::kFloat32, {2, 23, 41}, -1, 1);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor images,
                            unit.Random({3}, Rng(7, RngStream::kUser), 0));
  for (const auto& [h, w] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 16}, {10, 13}, {23, 41}, {24, 100}}) {
    const AxisWeights rows = LinearWeights(23, h, true);
    const AxisWeights columns = LinearWeights(41, w, true);
    std::vector<float> want;
    ForEachTarget([&, h = h, w = w] {
      const Tensor resized = Map({.w = w, .h = h}, images);
      ASSERT_EQ(resized.shape(), Shape({3, 2, h, w}));
      if (want.empty()) want = Floats(resized);
      EXPECT_EQ(Floats(resized), want);
    });
    for (int64_t i = 0; i < 6 * h * w; ++i) {
      const float* const image = images.data<float>() + i / (h * w) * 23 * 41;
      ASSERT_NEAR(want[static_cast<size_t>(i)],
                  PixelOf(image, rows, columns, i / w % h, i % w), 1e-6);
    }
  }
}

TEST(ResizeTest, WeightsOfAPixelAreAtMost1Together) {
  for (const bool antialias : {true, false}) {
    for (int64_t from = 1; from < 60; ++from) {
      for (int64_t to = 1; to < 60; ++to) {
        const AxisWeights axis = LinearWeights(from, to, antialias);
        for (int64_t i = 0; i < to; ++i) {
          const auto at = static_cast<size_t>(i);
          ASSERT_GE(axis.count[at], 1);
          ASSERT_LE(axis.count[at], axis.taps);
          ASSERT_GE(axis.first[at], 0);
          ASSERT_LE(axis.first[at] + axis.count[at], from);
          float sum = 0;
          for (int64_t k = 0; k < axis.count[at]; ++k) {
            sum += axis.weights[static_cast<size_t>(i * axis.taps + k)];
          }
          ASSERT_LE(sum, 1) << from << " to " << to;
          ASSERT_GE(sum, 1 - 1e-6f) << from << " to " << to;
        }
      }
    }
  }
}

TEST(ResizeTest, ImagesOfTheSizeStayAsTheyAre) {
  const Tensor pattern = Pattern(5, 7);
  EXPECT_THAT(Map({.w = 7, .h = 5}, pattern).BitEquals(pattern),
              IsOkAndHolds(true));
  // A pixel that another one does not depend on may be infinite.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor infinite = *Tensor::From<float>({1, kInfinity, 2, 3}, {1, 2, 2});
  EXPECT_THAT(Map({.w = 2}, infinite).BitEquals(infinite), IsOkAndHolds(true));
}

TEST(ResizeTest, WhiteStaysWhite) {
  const std::vector<uint8_t> white(30 * 17, 255);
  EXPECT_THAT(
      Map({.w = 11, .h = 13}, *Tensor::From<uint8_t>(white, {1, 30, 17}))
          .Flat<uint8_t>(),
      IsOkAndHolds(Each(255)));
}

TEST(ResizeTest, ImagesOfTwoSizesTakeTurns) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto resize,
      Resize::Create({.w = 3, .in_keys = {"pixels", "next/pixels"}}));
  for (int i = 0; i < 2; ++i) {
    TensorDict batch({1});
    RILL_ASSERT_OK(batch.Set("pixels", Pattern(5, 7)));
    RILL_ASSERT_OK(batch.Set("next/pixels", Pattern(9, 4)));
    RILL_ASSERT_OK(resize->Forward(&batch, nullptr));
    EXPECT_THAT(batch.Find("pixels")->BitEquals(Map({.w = 3}, Pattern(5, 7))),
                IsOkAndHolds(true));
    EXPECT_THAT(
        batch.Find("next/pixels")->BitEquals(Map({.w = 3}, Pattern(9, 4))),
        IsOkAndHolds(true));
  }
}

// The weights of one size take about 3 MB.
TEST(ResizeTest, WeightsOfTheLastFewSizesAreKept) {
  RILL_ASSERT_OK_AND_ASSIGN(auto resize, Resize::Create({.w = 65536, .h = 1}));
  const int64_t before = AnonymousMemoryBytes();
  for (int64_t width = 1; width <= 50; ++width) {
    TensorDict batch({1});
    RILL_ASSERT_OK(
        batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {1, 1, width})));
    RILL_ASSERT_OK(resize->Forward(&batch, nullptr));
  }
  EXPECT_LT(AnonymousMemoryBytes() - before, 60 << 20);
}

TEST(ResizeTest, BoundsThatRoundingKeepsStay) {
  RILL_ASSERT_OK_AND_ASSIGN(auto resize, Resize::Create({.w = 2}));
  const auto after = [&](DType dtype, double low, double high) {
    const auto spec = resize->ForwardSpec(
        PixelSpec(LeafSpec::Bounded(dtype, {3, 4, 4}, low, high)));
    RILL_EXPECT_OK(spec);
    return *spec->Find("pixels");
  };
  EXPECT_EQ(after(DType::kFloat32, 0, 1),
            LeafSpec::Bounded(DType::kFloat32, {3, 2, 2}, 0, 1));
  EXPECT_EQ(after(DType::kUInt8, 3, 200),
            LeafSpec::Bounded(DType::kUInt8, {3, 2, 2}, 3, 200));
  EXPECT_EQ(after(DType::kFloat32, 0, 0.3),
            LeafSpec::Unbounded(DType::kFloat32, {3, 2, 2}));
}

TEST(ResizeTest, WhatCannotBeResizedIsAnErrorThatNamesIt) {
  RILL_ASSERT_OK_AND_ASSIGN(auto resize, Resize::Create({.w = 2}));
  for (const LeafSpec& leaf : {LeafSpec::Unbounded(DType::kUInt8, {4}),
                               LeafSpec::Unbounded(DType::kUInt8, {4, 0}),
                               LeafSpec::Unbounded(DType::kUInt8, {0, 4}),
                               LeafSpec::Unbounded(DType::kInt64, {4, 4})}) {
    EXPECT_THAT(
        resize->ForwardSpec(PixelSpec(leaf)),
        StatusIs(kInvalidArgument,
                 AllOf(HasSubstr("Resize::ForwardSpec: \"pixels\": got"),
                       HasSubstr("want [..., height, width]"))));
  }
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {1, 0, 4})));
  EXPECT_EQ(resize->Forward(&batch, nullptr).code(), kInvalidArgument);
}

// [16, 16, 1] has been read as 16 channels of 16 rows and one column.
TEST(ResizeTest, ImagesOfChannelsLastAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto resize, Resize::Create({.w = 8}));
  for (const int64_t channels : {1, 3, 4}) {
    EXPECT_THAT(resize->ForwardSpec(PixelSpec(
                    LeafSpec::Unbounded(DType::kUInt8, {16, 16, channels}))),
                StatusIs(kInvalidArgument, HasSubstr("ToTensorImage")));
    RILL_EXPECT_OK(resize->ForwardSpec(
        PixelSpec(LeafSpec::Unbounded(DType::kUInt8, {channels, 16, 16}))));
  }
  TensorDict batch({1});
  RILL_ASSERT_OK(
      batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {1, 16, 16, 1})));
  EXPECT_EQ(resize->Forward(&batch, nullptr).code(), kInvalidArgument);
}

TEST(ResizeTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(Resize::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("w and h: got 0")));
  EXPECT_THAT(Resize::Create({.w = 1, .h = 65537}),
              StatusIs(kInvalidArgument, HasSubstr("1 .. 65536")));
  EXPECT_THAT(Resize::Create({.w = 1, .in_keys = {"a//b"}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

const LeafSpec kUnit = LeafSpec::Bounded(DType::kFloat32, {3, 5, 9}, 0, 1);
const LeafSpec kSigned = LeafSpec::Bounded(DType::kFloat32, {5, 9}, -1, 1);
const LeafSpec kBytes = LeafSpec::Bounded(DType::kUInt8, {3, 9, 5}, 9, 77);

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Smaller, InABuffer<Resize>({.w = 4, .h = 3},
                                                             PixelSpec(kUnit)));
INSTANTIATE_TRANSFORM_CONFORMANCE(Larger,
                                  InABuffer<Resize>({.w = 12, .h = 7},
                                                    PixelSpec(kSigned)));
INSTANTIATE_TRANSFORM_CONFORMANCE(Bytes, InABuffer<Resize>({.w = 3},
                                                           PixelSpec(kBytes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Nearest,
    InABuffer<Resize>({.w = 3, .interpolation = kNearest}, PixelSpec(kBytes)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Smaller, BesideAnEnvironment<Resize>({.w = 4, .h = 3}, PixelSpec(kUnit)));

}  // namespace rill
