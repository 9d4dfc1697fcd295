// SPDX-License-Identifier: Apache-2.0
// A buffer that is asked for page-locked samples gives them whatever its
// transforms did. (In TorchRL one custom transform that returns a dictionary
// without a device makes pin_memory=True a no-op: pytorch/rl #2404.)
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/device_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/reward_scaling.h"

namespace rill {
namespace {

using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

absl::Status ViewAndBack(TensorDict* batch) {
  auto view = batch->Unsqueeze(0);
  if (view.ok()) view = view->SelectDim(0, 0);
  if (view.ok()) *batch = *std::move(view);
  return view.status();
}

absl::Status NewLeaf(TensorDict* batch) {
  auto leaf = Tensor::Zeros(DType::kFloat64, batch->batch_shape());
  return leaf.ok() ? batch->Set("next/bonus", *leaf) : leaf.status();
}

absl::Status ThroughTheDevice(TensorDict* batch) {
  auto moved = batch->To(DeviceUnderTest());
  if (moved.ok()) moved = moved->To(Device::Cpu());
  if (moved.ok()) *batch = *std::move(moved);
  return moved.status();
}

absl::Status DropOrigins(TensorDict* batch) {
  auto rest = batch->Exclude({"index", "index_generation"});
  if (rest.ok()) *batch = *std::move(rest);
  return rest.status();
}

absl::Status StridedLeaf(TensorDict* batch) {
  auto leaf = batch->Get("observation");
  if (leaf.ok()) leaf = leaf->Slice(1, 0, 3, 2);
  return leaf.ok() ? batch->Set("corners", *leaf) : leaf.status();
}

std::unique_ptr<BatchTransform> OnRead(FunctionTransform::Function function) {
  return *FunctionTransform::Create({.forward = std::move(function)});
}

std::unique_ptr<BatchTransform> TransformOfKind(int64_t kind) {
  switch (kind) {
    case 0:
      return OnRead(BuildAnew);
    case 1:
      return OnRead(ViewAndBack);
    case 2:
      return OnRead(NewLeaf);
    case 3:
      return OnRead(ThroughTheDevice);
    case 4:
      return OnRead(DropOrigins);
    case 5:
      return OnRead(StridedLeaf);
    default:
      return *RewardScaling::Create({.scale = 2});
  }
}
constexpr int64_t kKinds = 7;

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakePinningBuffer(
    Transforms transforms, int64_t prefetch = 0) {
  return ReplayBuffer::Create({.storage = MakeStorage(10),
                               .sampler = MakeUniformSampler(),
                               .transforms = std::move(transforms),
                               .batch_size = 4,
                               .pin_memory = true,
                               .pin_for = DeviceUnderTest(),
                               .prefetch = prefetch});
}

void ExpectPinned(const TensorDict& batch) {
  EXPECT_TRUE(batch.is_pinned());
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_TRUE(leaf.is_pinned()) << key;
  });
}

TEST(PinningSurvivesTransformsTest, SampleIsPinnedWithoutTransforms) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, MakePinningBuffer({}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  ExpectPinned(batch);
  ExpectWholeSteps(batch, 10);
  const std::byte* before = batch.Find("observation")->raw_data();
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  ExpectPinned(batch);
  EXPECT_EQ(batch.Find("observation")->raw_data(), before);
}

TEST(PinningSurvivesTransformsTest, SampleIsPinnedWhenADictHasNoDevice) {
  Transforms transforms;
  transforms.push_back(OnRead(BuildAnew));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            MakePinningBuffer(std::move(transforms)));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  TensorDict batch;
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(buffer->SampleInto(&batch));
    ExpectPinned(batch);
    ExpectWholeSteps(batch, 10);
  }
}

// A batch that came back pageable is not taken for one that fits.
TEST(PinningSurvivesTransformsTest, PageableBatchOfTheCallerIsReplaced) {
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer, MakePinningBuffer({}));
  RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(DeviceUnderTest()));
  RILL_ASSERT_OK_AND_ASSIGN(batch, batch.To(Device::Cpu()));
  EXPECT_FALSE(batch.is_pinned());
  RILL_ASSERT_OK(buffer->SampleInto(&batch));
  ExpectPinned(batch);
}

TEST(PinningSurvivesTransformsTest,
     F6_SampleIsPinnedAfterAThousandRandomChains) {
  const Rng rng(/*seed=*/2404, RngStream::kUser);
  for (uint64_t chain = 0; chain < 1000; ++chain) {
    Transforms transforms;
    const int64_t length = rng.UniformInt(chain, 0, 6);
    for (int64_t i = 0; i < length; ++i) {
      transforms.push_back(TransformOfKind(
          rng.UniformInt(chain, static_cast<uint32_t>(i) + 1, kKinds)));
    }
    // Half of them make batches ahead.
    const int64_t prefetch = chain % 2 == 0 ? 0 : 2;
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer, MakePinningBuffer(std::move(transforms), prefetch));
    RILL_ASSERT_OK(buffer->Extend(NumberedSteps(1, 10)));
    TensorDict batch;
    // Long enough for batches in memory that came back.
    for (int64_t i = 0; i < 2 + 2 * prefetch; ++i) {
      RILL_ASSERT_OK(buffer->SampleInto(&batch)) << "chain " << chain;
      ExpectPinned(batch);
      EXPECT_NE(batch.Find("index"), nullptr) << "chain " << chain;
    }
    if (HasFailure()) return;
  }
}

TEST(PinningSurvivesTransformsTest, OptionsThatContradictAreNamed) {
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(10),
                                    .sampler = MakeUniformSampler(),
                                    .pin_memory = true,
                                    .pin_for = Device::Cpu()}),
              IsInvalidArgument("pin_for: got cpu"));
  EXPECT_THAT(ReplayBuffer::Create({.storage = MakeStorage(10),
                                    .sampler = MakeUniformSampler(),
                                    .pin_memory = true,
                                    .device = DeviceUnderTest(),
                                    .pin_for = DeviceUnderTest()}),
              IsInvalidArgument("pin_memory: got true, and device " +
                                DeviceUnderTest().ToString()));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto on_device,
      DenseStorage::Create({.capacity = 10, .device = DeviceUnderTest()}));
  EXPECT_THAT(ReplayBuffer::Create({.storage = std::move(on_device),
                                    .sampler = MakeUniformSampler(),
                                    .pin_memory = true,
                                    .pin_for = DeviceUnderTest()}),
              IsInvalidArgument("storage on " + DeviceUnderTest().ToString()));
}

}  // namespace
}  // namespace rill
