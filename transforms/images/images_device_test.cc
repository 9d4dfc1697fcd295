// SPDX-License-Identifier: Apache-2.0
// The column "device" of docs/transforms.md, on the fake device and on a GPU.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/device_table.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/crop.h"
#include "rill/transforms/images/gray_scale.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"

namespace rill {
namespace {

// With images of other dtypes.
TensorDict Batch() {
  TensorDict batch = DeviceCaseBatch();
  RILL_EXPECT_OK(
      batch.Set("planes64", *Cast(*batch.Find("planes"), DType::kFloat64)));
  RILL_EXPECT_OK(
      batch.Set("bytes", *Cast(*batch.Find("planes"), DType::kUInt8)));
  RILL_EXPECT_OK(
      batch.Set("halves", *Cast(*batch.Find("planes"), DType::kFloat16)));
  return batch;
}

TEST(ImagesDeviceTest, AreAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform) {
    cases.push_back({std::move(transform), Batch()});
  };
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    add(*ToTensorImage::Create(
        {.dtype = dtype, .in_keys = {"pixels", "next/pixels", "planes64"}}));
  }
  add(*ToTensorImage::Create({.from_int = false, .in_keys = {"pixels"}}));
  add(*ToTensorImage::Create({.from_int = true,
                              .unsqueeze = true,
                              .in_keys = {"planes", "halves", "planes64"}}));
  add(*ToTensorImage::Create({.in_keys = {"pixels", "bytes"},
                              .out_keys = {"x", "y"},
                              .shape_tolerant = true}));
  add(*Crop::Create({.w = 2,
                     .h = 3,
                     .top = 1,
                     .left = 2,
                     .in_keys = {"planes", "bytes", "planes64"}}));
  add(*CenterCrop::Create(
      {.w = 3, .h = 2, .in_keys = {"planes", "bytes", "halves"}}));
  for (const bool antialias : {true, false}) {
    for (const int64_t w : {3, 5, 11}) {
      add(*Resize::Create({.w = w,
                           .h = 4,
                           .antialias = antialias,
                           .in_keys = {"planes", "bytes"}}));
    }
  }
  add(*Resize::Create({.w = 7,
                       .interpolation = Resize::Interpolation::kNearest,
                       .in_keys = {"planes", "bytes", "planes64", "halves"},
                       .out_keys = {"a", "b", "c", "d"}}));
  add(*GrayScale::Create({.in_keys = {"planes", "bytes", "planes64"}}));
  add(*CatFrames::Create(
      {.num_frames = 3, .dim = -3, .in_keys = {"planes", "pixels"}}));
  ExpectAsDocumented("transforms/images/", cases, DeviceUnderTest());
}

}  // namespace
}  // namespace rill
