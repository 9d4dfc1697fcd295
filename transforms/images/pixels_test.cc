// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/to_tensor_image.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// A step with such pixels.
TensorDictSpec PixelSpec(const LeafSpec& pixels) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("pixels", pixels));
  RILL_EXPECT_OK(spec.Set("next/pixels", pixels));
  return spec;
}

const LeafSpec kBytes = LeafSpec::Unbounded(DType::kUInt8, {5, 4, 3});
const LeafSpec kPlanes = LeafSpec::Bounded(DType::kFloat32, {3, 5, 4}, 0, 1);

template <typename T>
std::vector<T> Range(int64_t n) {
  std::vector<T> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<T>(i * 7 + 1));
  return values;
}

// The pixels [rows, ...] after `transform`.
template <typename Transform>
Tensor Map(const typename Transform::Options& options, const Tensor& pixels) {
  const auto transform = Transform::Create(options);
  RILL_EXPECT_OK(transform);
  TensorDict batch({pixels.shape()[0]});
  RILL_EXPECT_OK(batch.Set("pixels", pixels));
  RILL_EXPECT_OK((*transform)->Forward(&batch, nullptr));
  return *batch.Get("pixels");
}

// --- ToTensorImage -----------------------------------------------------------

TEST(ToTensorImageTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_image, ToTensorImage::Create({}));
  EXPECT_EQ(to_image->name(), "ToTensorImage");
}

TEST(ToTensorImageTest, T8_BytesBecomeFloatsBehindTheirChannels) {
  const Tensor image = Map<ToTensorImage>(
      {}, *Tensor::From<uint8_t>(std::vector<uint8_t>(144, 255), {2, 4, 6, 3}));
  EXPECT_EQ(image.shape(), Shape({2, 3, 4, 6}));
  EXPECT_THAT(image.Flat<float>(), IsOkAndHolds(Each(1.0f)));
}

TEST(ToTensorImageTest, EachElementGoesToItsPlaceOverThe255) {
  ForEachTarget([] {
    for (const int64_t channels : {1, 2, 3, 4, 7}) {
      for (const int64_t width : {1, 5, 64, 255, 256, 257, 601}) {
        const int64_t image = 2 * width * channels;
        const std::vector<uint8_t> in = Range<uint8_t>(3 * image);
        const Tensor out = Map<ToTensorImage>(
            {}, *Tensor::From<uint8_t>(in, {3, 2, width, channels}));
        ASSERT_EQ(out.shape(), Shape({3, channels, 2, width}));
        std::vector<float> want;
        for (int64_t row = 0; row < 3; ++row) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = 0; i < 2 * width; ++i) {
              const auto at =
                  static_cast<size_t>(row * image + i * channels + c);
              want.push_back(static_cast<float>(in[at]) / 255.0f);
            }
          }
        }
        ASSERT_THAT(out.Flat<float>(), IsOkAndHolds(ElementsAreArray(want)))
            << channels << " channels, width " << width;
      }
    }
  });
}

TEST(ToTensorImageTest, FloatsKeepTheirScaleUnlessToldOtherwise) {
  const Tensor floats = *Tensor::From<float>({51, 102, 255}, {1, 1, 1, 3});
  EXPECT_THAT(Map<ToTensorImage>({}, floats).Flat<float>(),
              IsOkAndHolds(ElementsAre(51, 102, 255)));
  EXPECT_THAT(Map<ToTensorImage>({.from_int = true}, floats).Flat<float>(),
              IsOkAndHolds(ElementsAre(0.2f, 0.4f, 1)));
  const Tensor bytes = *Tensor::From<uint8_t>({51, 102, 255}, {1, 1, 1, 3});
  EXPECT_THAT(Map<ToTensorImage>({.from_int = false}, bytes).Flat<float>(),
              IsOkAndHolds(ElementsAre(51, 102, 255)));
}

TEST(ToTensorImageTest, ResultsHaveTheDTypeThatIsAskedFor) {
  const Tensor bytes = *Tensor::From<uint8_t>({51, 102, 255}, {1, 1, 1, 3});
  const Tensor wide = Map<ToTensorImage>({.dtype = DType::kFloat64}, bytes);
  EXPECT_THAT(wide.Flat<double>(), IsOkAndHolds(ElementsAre(0.2f, 0.4f, 1)));
  const Tensor doubles = *Tensor::From<double>({51, 102, 255}, {1, 1, 1, 3});
  EXPECT_THAT(
      Map<ToTensorImage>({.from_int = true, .dtype = DType::kFloat64}, doubles)
          .Flat<double>(),
      IsOkAndHolds(ElementsAre(0.2, 0.4, 1)));
  const Tensor half = Map<ToTensorImage>({.dtype = DType::kFloat16}, bytes);
  EXPECT_THAT(Cast(half, DType::kFloat32)->Flat<float>(),
              IsOkAndHolds(ElementsAre(0.199951171875f, 0.39990234375f, 1)));
}

TEST(ToTensorImageTest, OtherImagesKeepTheirOrderWhereThatIsTolerated) {
  const Tensor planes =
      *Tensor::From<uint8_t>(Range<uint8_t>(12), {1, 3, 2, 2});
  EXPECT_EQ(Map<ToTensorImage>({}, planes).shape(), Shape({1, 2, 3, 2}));
  const Tensor kept =
      Map<ToTensorImage>({.from_int = false, .shape_tolerant = true}, planes);
  EXPECT_EQ(kept.shape(), Shape({1, 3, 2, 2}));
  EXPECT_THAT(kept.Flat<float>(),
              IsOkAndHolds(ElementsAreArray(Range<float>(12))));
}

TEST(ToTensorImageTest, UnsqueezeAddsADimensionToSingleImages) {
  const Tensor one = *Tensor::From<uint8_t>(Range<uint8_t>(12), {1, 2, 2, 3});
  EXPECT_EQ(Map<ToTensorImage>({.unsqueeze = true}, one).shape(),
            Shape({1, 1, 3, 2, 2}));
  const Tensor four =
      *Tensor::From<uint8_t>(Range<uint8_t>(12), {1, 1, 2, 2, 3});
  EXPECT_EQ(Map<ToTensorImage>({.unsqueeze = true}, four).shape(),
            Shape({1, 1, 3, 2, 2}));
}

TEST(ToTensorImageTest, BoundsAreDividedToo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_image, ToTensorImage::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDictSpec after,
                            to_image->ForwardSpec(PixelSpec(LeafSpec::Bounded(
                                DType::kUInt8, {2, 5, 3}, 0, 51))));
  EXPECT_EQ(*after.Find("pixels"),
            LeafSpec::Bounded(DType::kFloat32, {3, 2, 5}, 0, 0.2f));
  RILL_ASSERT_OK_AND_ASSIGN(after, to_image->ForwardSpec(PixelSpec(kBytes)));
  EXPECT_EQ(*after.Find("pixels"),
            LeafSpec::Bounded(DType::kFloat32, {3, 5, 4}, 0, 1));
}

TEST(ToTensorImageTest, WhatIsNoImageIsAnErrorThatNamesIt) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_image, ToTensorImage::Create({}));
  const LeafSpec flat = LeafSpec::Unbounded(DType::kUInt8, {4, 3});
  const LeafSpec complex = LeafSpec::Unbounded(DType::kComplex64, {4, 4, 3});
  const LeafSpec narrow = LeafSpec::Unbounded(DType::kUInt8, {5, 0, 3});
  for (const LeafSpec& leaf : {flat, complex, narrow}) {
    EXPECT_THAT(
        to_image->ForwardSpec(PixelSpec(leaf)),
        StatusIs(kInvalidArgument,
                 AllOf(HasSubstr("ToTensorImage::ForwardSpec: \"pixels\""),
                       HasSubstr("[..., height, width, channels]"))));
  }
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {2, 3})));
  EXPECT_EQ(to_image->Forward(&batch, nullptr).code(), kInvalidArgument);
  RILL_ASSERT_OK(
      batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {2, 4, 0, 3})));
  EXPECT_THAT(to_image->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("ToTensorImage: \"pixels\": got"),
                             HasSubstr("all > 0"))));
}

TEST(ToTensorImageTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(ToTensorImage::Create({.dtype = DType::kUInt8}),
              StatusIs(kInvalidArgument, HasSubstr("dtype: got uint8")));
  EXPECT_THAT(ToTensorImage::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(ToTensorImage::Create({.out_keys = {"a", "b"}}),
              StatusIs(kInvalidArgument, HasSubstr("out_keys")));
}

// --- Crop, CenterCrop --------------------------------------------------------

TEST(CropTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop,
                            Crop::Create({.w = 160, .h = 160, .top = 34}));
  EXPECT_EQ(crop->name(), "Crop");
}

TEST(CropTest, CenterExample) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop, CenterCrop::Create({.w = 84}));
  EXPECT_EQ(crop->name(), "CenterCrop");
}

TEST(CropTest, WidthAndHeightAreThoseOfTheResult) {
  // Two images of 3 x 4.
  std::vector<uint8_t> pixels;
  for (uint8_t i = 0; i < 24; ++i) pixels.push_back(i);
  const Tensor in = *Tensor::From<uint8_t>(pixels, {2, 1, 3, 4});
  const Tensor out = Map<Crop>({.w = 3, .h = 2, .top = 1, .left = 1}, in);
  EXPECT_EQ(out.shape(), Shape({2, 1, 2, 3}));
  EXPECT_THAT(
      out.Flat<uint8_t>(),
      IsOkAndHolds(ElementsAre(5, 6, 7, 9, 10, 11, 17, 18, 19, 21, 22, 23)));
  EXPECT_EQ(Map<Crop>({.w = 2}, in).shape(), Shape({2, 1, 2, 2}));
}

// torchvision rounds half of what is left half to even, so the first rows are
// 0, 0, 1, 2, 2, 2, 3, 4 where 0 .. 7 are left.
TEST(CropTest, TheMiddleIsWhereTorchvisionHasIt) {
  const std::vector<float> first = {0, 0, 1, 2, 2, 2, 3, 4};
  for (size_t left = 0; left < first.size(); ++left) {
    std::vector<float> rows;
    for (size_t i = 0; i < left + 2; ++i) rows.push_back(static_cast<float>(i));
    const int64_t size = static_cast<int64_t>(rows.size());
    const Tensor tall = *Tensor::From<float>(rows, {1, size, 1});
    EXPECT_THAT(Map<CenterCrop>({.w = 1, .h = 2}, tall).Flat<float>(),
                IsOkAndHolds(ElementsAre(first[left], first[left] + 1)));
    const Tensor wide = *Tensor::From<float>(rows, {1, 1, size});
    EXPECT_THAT(Map<CenterCrop>({.w = 2, .h = 1}, wide).Flat<float>(),
                IsOkAndHolds(ElementsAre(first[left], first[left] + 1)));
  }
}

TEST(CropTest, ImagesOfChannelsLastAreRefused) {
  const TensorDictSpec last =
      PixelSpec(LeafSpec::Unbounded(DType::kUInt8, {16, 16, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(auto crop, Crop::Create({.w = 2}));
  EXPECT_THAT(crop->ForwardSpec(last),
              StatusIs(kInvalidArgument, HasSubstr("ToTensorImage")));
  RILL_ASSERT_OK_AND_ASSIGN(auto center, CenterCrop::Create({.w = 2}));
  EXPECT_THAT(center->ForwardSpec(last),
              StatusIs(kInvalidArgument, HasSubstr("ToTensorImage")));
}

TEST(CropTest, ImagesThatAreTooSmallAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto crop, Crop::Create({.w = 4, .top = 2}));
  EXPECT_THAT(crop->ForwardSpec(PixelSpec(kPlanes)),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("Crop::ForwardSpec: \"pixels\""),
                             HasSubstr("rows 2 to 6"))));
  RILL_ASSERT_OK_AND_ASSIGN(auto center, CenterCrop::Create({.w = 5}));
  EXPECT_THAT(center->PlanSteps(PixelSpec(kPlanes)).status(),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("CenterCrop::PlanSteps: \"pixels\""),
                             HasSubstr("at least 5 rows and 5 columns"))));
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {1, 6})));
  EXPECT_EQ(center->Forward(&batch, nullptr).code(), kInvalidArgument);
}

TEST(CropTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(Crop::Create({}), StatusIs(kInvalidArgument, HasSubstr("w and")));
  EXPECT_THAT(Crop::Create({.w = 1, .h = 0}),
              StatusIs(kInvalidArgument, HasSubstr("got 1 and 0")));
  EXPECT_THAT(Crop::Create({.w = 1, .left = -1}),
              StatusIs(kInvalidArgument, HasSubstr("top and left")));
  EXPECT_THAT(CenterCrop::Create({.w = -1}),
              StatusIs(kInvalidArgument, HasSubstr("CenterCrop::Create: w")));
  EXPECT_THAT(CenterCrop::Create({.w = 1, .in_keys = {"a", "a"}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

// --- GrayScale ---------------------------------------------------------------

TEST(GrayScaleTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto gray, GrayScale::Create({}));
  EXPECT_EQ(gray->name(), "GrayScale");
}

TEST(GrayScaleTest, T8_PureRedIs2989) {
  const Tensor red = *Tensor::From<float>({1, 0, 0}, {1, 3, 1, 1});
  EXPECT_THAT(Map<GrayScale>({}, red).Flat<float>(),
              IsOkAndHolds(ElementsAre(0.2989f)));
}

// Recorded from torch 2.15: 0.2989 * r + 0.587 * g + 0.114 * b over tensors of
// these bytes. First cut to uint8, then of float32 tensors of the bytes / 255.
TEST(GrayScaleTest, EqualsTorchBitForBit) {
  const std::vector<uint8_t> pixels = {10, 200, 255, 0, 77,  //
                                       20, 100, 255, 0, 31,  //
                                       30, 50,  255, 1, 200};
  ForEachTarget([&] {
    const Tensor bytes = *Tensor::From<uint8_t>(pixels, {1, 3, 1, 5});
    EXPECT_THAT(Map<GrayScale>({}, bytes).Flat<uint8_t>(),
                IsOkAndHolds(ElementsAre(18, 124, 254, 0, 64)));
    std::vector<float> unit;
    for (const uint8_t pixel : pixels) {
      unit.push_back(static_cast<float>(pixel) / 255.0f);
    }
    EXPECT_THAT(
        Map<GrayScale>({}, *Tensor::From<float>(unit, {1, 3, 1, 5}))
            .Flat<float>(),
        IsOkAndHolds(ElementsAre(0x1.2385d6p-4f, 0x1.f2aafep-2f, 0x1.fff2e6p-1f,
                                 0x1.d4c672p-12f, 0x1.010da8p-2f)));
  });
}

TEST(GrayScaleTest, EveryPixelOfEveryImageIsGray) {
  ForEachTarget([] {
    for (const int64_t width : {1, 3, 4, 16, 37}) {
      const int64_t image = 3 * width;
      const std::vector<uint8_t> in = Range<uint8_t>(2 * image);
      const Tensor bytes = *Tensor::From<uint8_t>(in, {2, 3, 1, width});
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor doubles,
                                Cast(bytes, DType::kFloat64));
      const Tensor cut = Map<GrayScale>({}, bytes);
      const Tensor exact = Map<GrayScale>({}, doubles);
      ASSERT_EQ(cut.shape(), Shape({2, 1, 1, width}));
      for (int64_t i = 0; i < 2 * width; ++i) {
        const auto at = static_cast<size_t>(i / width * image + i % width);
        const auto w = static_cast<size_t>(width);
        const double want =
            0.2989 * in[at] + 0.587 * in[at + w] + 0.114 * in[at + 2 * w];
        EXPECT_NEAR(exact.data<double>()[i], want, 1e-12);
        EXPECT_EQ(cut.data<uint8_t>()[i], static_cast<uint8_t>(want + 1e-5));
      }
    }
  });
}

TEST(GrayScaleTest, BoundsAreThoseOfGrays) {
  RILL_ASSERT_OK_AND_ASSIGN(auto gray, GrayScale::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec after,
                            gray->ForwardSpec(PixelSpec(LeafSpec::Bounded(
                                DType::kUInt8, {3, 5, 4}, 0, 255))));
  EXPECT_EQ(*after.Find("pixels"),
            LeafSpec::Bounded(DType::kUInt8, {1, 5, 4}, 0, 254));
}

TEST(GrayScaleTest, WhatIsNotOfThreeChannelsIsAnError) {
  RILL_ASSERT_OK_AND_ASSIGN(auto gray, GrayScale::Create({}));
  for (const LeafSpec& leaf :
       {kBytes, LeafSpec::Unbounded(DType::kUInt8, {3, 4}),
        LeafSpec::Unbounded(DType::kUInt8, {3, 5, 0}),
        LeafSpec::Unbounded(DType::kUInt8, {3, 0, 5}),
        LeafSpec::Unbounded(DType::kInt64, {3, 4, 4})}) {
    EXPECT_THAT(gray->ForwardSpec(PixelSpec(leaf)),
                StatusIs(kInvalidArgument,
                         AllOf(HasSubstr("GrayScale::ForwardSpec: \"pixels\""),
                               HasSubstr("[..., 3, height, width]"))));
  }
  EXPECT_THAT(GrayScale::Create({.in_keys = {"/"}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(ToTensorImage,
                                  InABuffer<ToTensorImage>({},
                                                           PixelSpec(kBytes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    ToTensorImageOfHalves,
    InABuffer<ToTensorImage>(
        {.from_int = true,
         .dtype = DType::kFloat16,
         .in_keys = {"pixels", "next/pixels"},
         .out_keys = {"image", "next/image"}},
        PixelSpec(LeafSpec::Bounded(DType::kFloat32, {5, 4, 3}, 0.1, 200))));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    ToTensorImage, BesideAnEnvironment<ToTensorImage>({}, PixelSpec(kBytes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(Crop,
                                  InABuffer<Crop>({.w = 2, .h = 3, .top = 1},
                                                  PixelSpec(kPlanes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(CenterCrop,
                                  InABuffer<CenterCrop>({.w = 3},
                                                        PixelSpec(kPlanes)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    CenterCrop, BesideAnEnvironment<CenterCrop>({.w = 3}, PixelSpec(kPlanes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(GrayScale,
                                  InABuffer<GrayScale>({}, PixelSpec(kPlanes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    GrayScaleOfBytes,
    InABuffer<GrayScale>({}, PixelSpec(LeafSpec::Bounded(DType::kUInt8,
                                                         {3, 5, 4}, 3, 250))));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    GrayScale, BesideAnEnvironment<GrayScale>({}, PixelSpec(kPlanes)));

}  // namespace rill
