// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/device/testing/fake_backend.h"

namespace rill {
namespace {

class EndsWithoutMisuse final : public ::testing::Environment {
 public:
  void TearDown() override {
    auto& fake = *static_cast<FakeBackend*>(*GetBackend(DeviceUnderTest()));
    EXPECT_THAT(fake.TakeMisuse(), ::testing::IsEmpty());
    EXPECT_EQ(fake.NumStreamsAndEvents(), 0);
  }
};

[[maybe_unused]] ::testing::Environment* const checks =
    ::testing::AddGlobalTestEnvironment(new EndsWithoutMisuse);

}  // namespace

Device DeviceUnderTest() { return Device::Fake(0); }

}  // namespace rill
