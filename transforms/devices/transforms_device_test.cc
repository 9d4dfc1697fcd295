// SPDX-License-Identifier: Apache-2.0
// The column "device" of docs/transforms.md, and chains, on the fake device and
// on a GPU.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/conformance/device_agreement.h"
#include "rill/transforms/conformance/device_table.h"
#include "rill/transforms/episodes/burn_in.h"
#include "rill/transforms/episodes/multi_step.h"
#include "rill/transforms/episodes/next_observation_delta.h"
#include "rill/transforms/episodes/policy_age_filter.h"
#include "rill/transforms/episodes/random_crop.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/rename.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/values/value_clips.h"

namespace rill {
namespace {

TEST(TransformsDeviceTest, BaseOnesAreAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform) {
    cases.push_back({std::move(transform), DeviceCaseBatch()});
  };
  add(*RewardScaling::Create({.scale = 0.3, .loc = 2}));
  add(*RewardScaling::Create({.scale = 0.3, .standard_normal = true}));
  add(*ToDevice::Create(DeviceUnderTest()));
  for (const char* traj : {"", "info/count"}) {
    add(*NextStateReconstructor::Create(
        {.keys = {"observation", "pixels", "wide"},
         .traj_key = traj,
         .step_count_key = "",
         .fill_value = 7,
         .strict = false}));
  }
  add(*NextStateReconstructor::Create({.traj_key = "",
                                       .done_key = "",
                                       .step_count_key = "steps",
                                       .mask_key = "valid",
                                       .strict = false}));
  const Tensor steps = *Tensor::Empty(DType::kInt16, {3, 8, 1});
  for (int i = 0; i < 24; ++i) {
    steps.data<int16_t>()[i] = static_cast<int16_t>(i % 5);
  }
  RILL_ASSERT_OK(cases.back().batch.Set("steps", steps));
  RILL_ASSERT_OK(
      cases.back().batch.Set("valid", *cases.back().batch.Find("next/done")));
  ExpectAsDocumented("The base ones", cases, DeviceUnderTest());
}

TEST(TransformsDeviceTest, EpisodesAreAsDocumented) {
  std::vector<DeviceCase> cases;
  const auto add = [&](std::unique_ptr<BatchTransform> transform,
                       TransformCall call = TransformCall::kForward) {
    cases.push_back({std::move(transform), DeviceCaseBatch(), call});
  };
  TensorDictSpec row;
  for (const char* key : {"next/terminated", "next/truncated", "next/done"}) {
    RILL_ASSERT_OK(row.Set(key, LeafSpec::Binary({1})));
  }
  RILL_ASSERT_OK(
      row.Set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  TensorDict rows({1, 4});
  rows = *row.Random({1, 4}, Rng(1), 0);
  cases.push_back({*MultiStep::Create({.n_steps = 2, .rows = row}),
                   std::move(rows), TransformCall::kInverse});
  for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
    const auto make = [&] {
      return *NextObservationDelta::Create(
          {.in_keys = {"observation", "state_value"}, .delta_dtype = dtype});
    };
    add(make(), TransformCall::kInverse);
    add(make());
    TensorDict state;
    RILL_ASSERT_OK(make()->Inverse(&cases.back().batch, &state));
  }
  add(*RandomCropTensorDict::Create({.sub_seq_len = 3}));
  add(*RandomCropTensorDict::Create({.sub_seq_len = 2, .sample_dim = 0}));
  add(*RandomCropTensorDict::Create({.sub_seq_len = 3, .mask_key = "mask"}));
  const Tensor mask = *Tensor::Zeros(DType::kBool, {3, 8});
  for (int i = 0; i < 24; ++i) mask.data<bool>()[i] = i % 8 < 3 + i / 8;
  RILL_ASSERT_OK(cases.back().batch.Set("mask", mask));
  add(*BurnIn::Create({.burn_in = 2}));
  add(*BurnIn::Create({.burn_in = 20, .mask_key = "next/done"}));
  add(*PolicyAgeFilter::Create({.policy_version_key = "info/count"}));
  ExpectAsDocumented("transforms/episodes/", cases, DeviceUnderTest());
}

// Results of one batch serve the next; leaves of a part of a batch have gaps.
TEST(TransformsDeviceTest, PartsOfBatchesAreCroppedAsOnTheHost) {
  const auto crop = *RandomCropTensorDict::Create({.sub_seq_len = 3});
  const TensorDict whole = DeviceCaseBatch({3, 8});
  const Stream stream = *Stream::Create(DeviceUnderTest());
  const StreamScope scope(stream);
  std::vector<Tensor> in_flight;
  const TensorDict moved = *whole.ToAsync(stream, &in_flight);
  TensorDict state = *crop->InitialState();
  std::vector<TensorDict> want, got;
  for (int i = 0; i < 4; ++i) {
    TensorDict device_state = state;
    got.push_back(*moved.Slice(1, i, 8));
    RILL_ASSERT_OK(crop->Forward(&got.back(), &device_state));
    want.push_back(*whole.Slice(1, i, 8));
    RILL_ASSERT_OK(crop->Forward(&want.back(), &state));
    RILL_EXPECT_OK(device_state.CheckEqual(state));
  }
  RILL_ASSERT_OK(stream.Synchronize());
  for (size_t i = 0; i < got.size(); ++i) {
    RILL_EXPECT_OK(got[i].To(Device::Cpu())->CheckEqual(want[i]));
  }
}

std::unique_ptr<Compose> Chain(
    std::vector<std::unique_ptr<BatchTransform>> of) {
  return *Compose::Create(std::move(of));
}

TEST(TransformsDeviceTest, ChainsAreAsOnTheHost) {
  std::vector<std::unique_ptr<BatchTransform>> parts;
  parts.push_back(
      *ToTensorImage::Create({.in_keys = {"pixels", "next/pixels"}}));
  parts.push_back(
      *Resize::Create({.w = 4, .in_keys = {"pixels", "next/pixels"}}));
  parts.push_back(*Rename::Create({.in_keys = {"observation"},
                                   .out_keys = {"state/now"},
                                   .create_copy = true}));
  parts.push_back(*CatTensors::Create(
      {.in_keys = {"observation", "torque"}, .out_key = "state/all"}));
  parts.push_back(*Clip::Create(
      {.in_keys = {"state/now", "state/all"}, .low = -0.5, .high = 0.5}));
  parts.push_back(*RewardScaling::Create({.scale = 3}));
  const auto chain = Chain(std::move(parts));
  for (int i = 0; i < 3; ++i) {
    ExpectSameOnDevice(*chain, TransformCall::kForward, DeviceCaseBatch(),
                       DeviceUnderTest());
  }
}

// The first batch of a layout is copied, and given back after an error.
TEST(TransformsDeviceTest, AChainThatFailsGivesTheBatchBack) {
  std::vector<std::unique_ptr<BatchTransform>> parts;
  parts.push_back(*RewardScaling::Create({.scale = 3}));
  parts.push_back(*Clip::Create({.in_keys = {"missing"}, .low = 0}));
  const auto chain = Chain(std::move(parts));
  const TensorDict before = DeviceCaseBatch();
  const Stream stream = *Stream::Create(DeviceUnderTest());
  const StreamScope scope(stream);
  std::vector<Tensor> in_flight;
  TensorDict batch = *before.ToAsync(stream, &in_flight);
  TensorDict state;
  EXPECT_EQ(chain->Forward(&batch, &state).code(), absl::StatusCode::kNotFound);
  RILL_ASSERT_OK(stream.Synchronize());
  RILL_EXPECT_OK(batch.To(Device::Cpu())->CheckEqual(before));
}

}  // namespace
}  // namespace rill
