// SPDX-License-Identifier: Apache-2.0
// The column "device" of docs/transforms.md, on the fake device and on a GPU.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/transforms/conformance/device_table.h"
#include "rill/transforms/values/finite_tensor_dict_check.h"
#include "rill/transforms/values/hash.h"
#include "rill/transforms/values/observation_norm.h"
#include "rill/transforms/values/unary.h"
#include "rill/transforms/values/value_clips.h"

namespace rill {
namespace {

TEST(ValuesDeviceTest, AreAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform,
                       TransformCall call = TransformCall::kForward) {
    cases.push_back({std::move(transform), DeviceCaseBatch(), call});
  };
  for (const bool divides : {true, false}) {
    for (const TransformCall call :
         {TransformCall::kForward, TransformCall::kInverse}) {
      add(*ObservationNorm::Create({.loc = {1, 0.3, -2, 4},
                                    .scale = {2, 3, 0.1, 7},
                                    .in_keys_inv = {"observation"},
                                    .standard_normal = divides}),
          call);
    }
    add(*ObservationNorm::Create({.loc = {1}, .scale = {3}}));
  }
  add(*Clip::Create({.in_keys = {"observation", "wide"},
                     .out_keys = {"observation", "narrow"},
                     .low = -0.3,
                     .high = 0.7}));
  add(*Clip::Create({.in_keys = {"info/count"}, .high = 4}));
  add(*Clip::Create({.in_keys = {"wide"}, .in_keys_inv = {"wide"}, .low = 0}),
      TransformCall::kInverse);
  add(*RewardClipping::Create({.clamp_min = -0.1, .clamp_max = 0.1}));
  add(*BinarizeReward::Create({}));
  add(*Sign::Create({.in_keys = {"next/reward", "info/count"}}));
  add(*Unary::Create({.in_keys = {"observation"},
                      .fn = [](const BoundLeaf&, const BoundLeaf&) {
                        return absl::OkStatus();
                      }}));
  for (const DType dtype : {DType::kInt64, DType::kUInt8}) {
    add(*Hash::Create({.in_keys = {"observation", "pixels", "next/done"},
                       .out_keys = {"a", "b", "c"},
                       .seed = 5,
                       .dtype = dtype}));
  }
  add(*FiniteTensorDictCheck::Create());
  ExpectAsDocumented("transforms/values/", cases, DeviceUnderTest());
}

}  // namespace
}  // namespace rill
