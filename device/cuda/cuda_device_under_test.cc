// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/testing/device_under_test.h"

namespace rill {
namespace {

// GTEST_SKIP in an Environment would count the cases as passed.
class SkipWithoutDevice final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& /*test*/) override {
    static const absl::Status& status =
        *new absl::Status(GetBackend(DeviceUnderTest()).status());
    if (!status.ok()) GTEST_SKIP() << "no CUDA device: " << status;
  }
};

[[maybe_unused]] const bool listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new SkipWithoutDevice);
  return true;
}();

}  // namespace

Device DeviceUnderTest() { return Device::Cuda(0); }

}  // namespace rill
