// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_DEVICE_UNDER_TEST_H_
#define RILL_DEVICE_TESTING_DEVICE_UNDER_TEST_H_

#include "rill/device/device.h"

namespace rill {

// The device of a test that is built with rill_device_test (device_test.bzl):
// fake:0 in <stem>_test, cuda:0 in <stem>_cuda_test. The former also fails at
// its end if the fake device was misused, or keeps a stream or an event. The
// latter skips all of its cases, with the driver's reason, on a machine without
// such a device.
Device DeviceUnderTest();

}  // namespace rill

#endif  // RILL_DEVICE_TESTING_DEVICE_UNDER_TEST_H_
