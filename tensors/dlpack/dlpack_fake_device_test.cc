// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST(DLPackFakeDeviceTest, BytesOfAFakeDeviceAreSharedUntilTheDeleter) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      Tensor tensor,
      Tensor::Empty(DType::kInt32, {2, 3}, {.device = Device::Fake(1)}));
  const std::byte* const data = tensor.raw_data();
  RILL_ASSERT_OK_AND_ASSIGN(DLManagedTensor* const managed, ToDLPack(tensor));
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLExtDev);
  EXPECT_EQ(managed->dl_tensor.device.device_id, 1);
  tensor = Tensor();
  RILL_ASSERT_OK_AND_ASSIGN(tensor, FromDLPack(managed));
  EXPECT_EQ(tensor.device(), Device::Fake(1));
  EXPECT_FALSE(tensor.is_host());
  EXPECT_EQ(tensor.raw_data(), data);
  EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kDevice), 1);
  tensor = Tensor();
  EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kDevice), 0);
}

TEST(DLPackFakeDeviceTest, AFakeDeviceThatIsNotThereIsRefused) {
  FakeBackend::Install({.num_devices = 2});
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor tensor,
      Tensor::Empty(DType::kInt32, {2}, {.device = Device::Fake(1)}));
  RILL_ASSERT_OK_AND_ASSIGN(DLManagedTensor* const managed, ToDLPack(tensor));
  managed->dl_tensor.device.device_id = 2;
  EXPECT_THAT(FromDLPack(managed),
              IsInvalidArgument("device: got type 12 index 2"));
}

}  // namespace
}  // namespace rill
