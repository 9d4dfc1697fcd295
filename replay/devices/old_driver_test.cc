// SPDX-License-Identifier: Apache-2.0
// CUDA is linked in, and the driver is older than the toolkit: a stand-in whose
// version BUILD sets (device/testing/recording_libcuda.cc).
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/testing/cuda_record.h"
#include "rill/replay/devices/refused_devices.h"

namespace rill {
namespace {

using ::testing::Contains;

TEST(OldDriverTest, DevicesAreRefusedAndRowsOfTheHostStay) {
  ExpectDevicesAreRefused();
  EXPECT_THAT(CudaCalls(), Contains("cuDriverGetVersion"));
  ForgetCudaCalls();
}

}  // namespace
}  // namespace rill
