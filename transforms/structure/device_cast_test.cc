// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/device_cast.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDict Batch() {
  TensorDict batch = *TedSpec().Random({4}, Rng(1, RngStream::kUser), 0);
  RILL_EXPECT_OK(batch.Set("note", NonTensor{"1"}));
  RILL_EXPECT_OK(batch.SetDimNames({"time"}));
  return batch;
}

const DeviceCast::Options kThereAndBack = {.device = Device::Fake(0),
                                           .orig_device = Device::Cpu()};

// --- DeviceCast --------------------------------------------------------------

TEST(DeviceCastTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto cast, DeviceCast::Create(kThereAndBack));
  EXPECT_EQ(cast->name(), "DeviceCast");
}

TEST(DeviceCastTest, WithoutAnOriginalDeviceWritesStayWhereTheyAre) {
  auto cast = *DeviceCast::Create({.device = Device::Fake(0)});
  TensorDict batch = Batch();
  RILL_ASSERT_OK(cast->Forward(&batch, nullptr));
  RILL_ASSERT_OK(cast->Inverse(&batch, nullptr));
  EXPECT_EQ(batch.device(), Device::Fake(0));
}

TEST(DeviceCastTest, DevicesThatAreNotThereAreRefusedAtOnce) {
  EXPECT_THAT(DeviceCast::Create({.device = Device::Fake(99)}),
              StatusIs(kInvalidArgument, HasSubstr("DeviceCast::Create")));
  // This test links no CUDA backend.
  EXPECT_THAT(DeviceCast::Create(
                  {.device = Device::Cpu(), .orig_device = Device::Cuda(0)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("orig_device")));
}

// --- PinMemory ---------------------------------------------------------------

TEST(PinMemoryTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto pin,
                            PinMemory::Create({.pin_for = Device::Fake(0)}));
  EXPECT_EQ(pin->name(), "PinMemory");
}

TEST(PinMemoryTest, DevicesThatCannotBeMeantAreRefusedAtOnce) {
  EXPECT_THAT(PinMemory::Create({.pin_for = Device::Cpu()}),
              StatusIs(kInvalidArgument, HasSubstr("pin_for: got cpu")));
  EXPECT_THAT(PinMemory::Create({}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("pin_for"), HasSubstr("cuda"))));
}

}  // namespace
}  // namespace rill
