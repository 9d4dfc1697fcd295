// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/device.h"

namespace rill {
namespace {

INSTANTIATE_BACKEND_CONFORMANCE(Fake0, {Device::Fake(0)});
INSTANTIATE_BACKEND_CONFORMANCE(Fake1, {Device::Fake(1)});

}  // namespace
}  // namespace rill
