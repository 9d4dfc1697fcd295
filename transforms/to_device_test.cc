// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/to_device.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

TransformUnderTest UnderTest(Device device) {
  return {.make = [device] { return *ToDevice::Create(device); },
          .batch_spec = TedSpec()};
}

TEST(ToDeviceTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_device, ToDevice::Create(Device::Fake(0)));
  EXPECT_EQ(to_device->name(), "ToDevice");
}

TEST(ToDeviceTest, ForwardMovesEveryLeafAndKeepsTheValues) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_device, ToDevice::Create(Device::Fake(0)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            TedSpec().Random({4}, Rng(1, RngStream::kUser), 0));
  const TensorDict before = batch;
  RILL_ASSERT_OK(to_device->Forward(&batch, nullptr));
  EXPECT_EQ(batch.device(), Device::Fake(0));
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), Device::Fake(0)) << key;
  });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, batch.To(Device::Cpu()));
  RILL_EXPECT_OK(back.CheckEqual(before));
}

TEST(ToDeviceTest, DeviceThatIsNotThereIsRefusedAtOnce) {
  EXPECT_THAT(ToDevice::Create(Device::Fake(99)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ToDevice::Create")));
  // This test links no CUDA backend.
  EXPECT_THAT(ToDevice::Create(Device::Cuda(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Cpu, UnderTest(Device::Cpu()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Fake, UnderTest(Device::Fake(0)));

}  // namespace rill
