// SPDX-License-Identifier: Apache-2.0
// The transforms of where a batch's leaves lie, on a fake device and on a GPU.
#include <cstddef>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/structure/device_cast.h"
#include "rill/transforms/to_device.h"

namespace rill {
namespace {

TensorDict Batch() {
  TensorDict batch = *TedSpec().Random({4}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_EXPECT_OK(batch.SetDimNames({"time"}));
  return batch;
}

DeviceCast::Options ThereAndBack() {
  return {.device = DeviceUnderTest(), .orig_device = Device::Cpu()};
}

TEST(ToDeviceTest, ForwardMovesEveryLeafAndKeepsTheValues) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_device,
                            ToDevice::Create(DeviceUnderTest()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            TedSpec().Random({4}, Rng(1, RngStream::kUser), 0));
  const TensorDict before = batch;
  RILL_ASSERT_OK(to_device->Forward(&batch, nullptr));
  EXPECT_EQ(batch.device(), DeviceUnderTest());
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), DeviceUnderTest()) << key;
  });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, batch.To(Device::Cpu()));
  RILL_EXPECT_OK(back.CheckEqual(before));
}

TEST(DeviceCastTest, LeavesGoThereAndBack) {
  auto cast = *DeviceCast::Create(ThereAndBack());
  TensorDict batch = Batch();
  RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
  EXPECT_EQ(batch.device(), DeviceUnderTest());
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), DeviceUnderTest()) << key;
  });
  EXPECT_TRUE(batch.Contains("note"));
  EXPECT_EQ(batch.dim_names().size(), 1u);
  RILL_ASSERT_OK(cast->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.device(), Device::Cpu());
  RILL_EXPECT_OK(batch.CheckEqual(Batch()));
}

TEST(PinMemoryTest, EveryLeafIsPinned) {
  auto pin = *PinMemory::Create({.pin_for = DeviceUnderTest()});
  TensorDict batch = Batch();
  EXPECT_FALSE(batch.is_pinned());
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_TRUE(batch.is_pinned());
  RILL_EXPECT_OK(batch.CheckEqual(Batch()));
  const std::byte* const pinned = batch.Find("action")->raw_data();
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->raw_data(), pinned);
}

TEST(PinMemoryTest, LeavesOnADeviceStayThere) {
  auto pin = *PinMemory::Create({.pin_for = DeviceUnderTest()});
  TensorDict batch = *Batch().To(DeviceUnderTest());
  const std::byte* const before = batch.Find("action")->raw_data();
  RILL_ASSERT_OK(pin->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("action")->raw_data(), before);
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(
    ToDevice, {.make = [] { return *ToDevice::Create(DeviceUnderTest()); },
               .batch_spec = TedSpec()});
INSTANTIATE_TRANSFORM_CONFORMANCE(
    DeviceCast, {.make = [] { return *DeviceCast::Create(ThereAndBack()); },
                 .batch_spec = TedSpec()});
INSTANTIATE_TRANSFORM_CONFORMANCE(
    PinMemory,
    {.make = [] { return *PinMemory::Create({.pin_for = DeviceUnderTest()}); },
     .batch_spec = TedSpec()});

}  // namespace rill
