// SPDX-License-Identifier: Apache-2.0
// The conformance suite on a real device, which this machine may not have.
#include "rill/device/cuda/cuda_backend.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/device.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::string WhyNoDevice() {
  const absl::StatusOr<Backend*> backend = GetBackend(Device::Cuda());
  if (backend.ok()) return "";
  return absl::StrCat("no CUDA device: ", backend.status().message());
}

INSTANTIATE_BACKEND_CONFORMANCE(Cuda, {Device::Cuda(), WhyNoDevice});

TEST(CudaBackendTest, IsRegisteredByLinkingIt) {
  const absl::StatusOr<Backend*> backend = GetBackend(Device::Cuda());
  if (!backend.ok()) {
    // Without a device the driver says so; the build is not to blame.
    EXPECT_THAT(
        backend,
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 ::testing::Not(::testing::HasSubstr("built without CUDA"))));
    GTEST_SKIP() << WhyNoDevice();
  }
  EXPECT_EQ((*backend)->type(), Device::Type::kCuda);
}

}  // namespace
}  // namespace rill
