// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/to_device.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

TEST(ToDeviceTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_device, ToDevice::Create(Device::Fake(0)));
  EXPECT_EQ(to_device->name(), "ToDevice");
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

INSTANTIATE_TRANSFORM_CONFORMANCE(
    Cpu, {.make = [] { return *ToDevice::Create(Device::Cpu()); },
          .batch_spec = TedSpec()});

}  // namespace rill
