// SPDX-License-Identifier: Apache-2.0
// CUDA is linked in, and the machine has no driver: BUILD puts a file that is
// no library before each libcuda.so.1.
#include <dlfcn.h>

#include "gtest/gtest.h"
#include "rill/replay/devices/refused_devices.h"

namespace rill {
namespace {

TEST(NoDriverTest, DevicesAreRefusedAndRowsOfTheHostStay) {
  ASSERT_EQ(dlopen("libcuda.so.1", RTLD_LAZY), nullptr);
  ExpectDevicesAreRefused();
}

}  // namespace
}  // namespace rill
