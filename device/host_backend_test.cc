// SPDX-License-Identifier: Apache-2.0
#include "rill/device/host_backend.h"

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/device/buffer.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

INSTANTIATE_BACKEND_CONFORMANCE(Host, {Device::Cpu()});

TEST(HostBackendTest, BigAllocationsAreAlignedToHugePages) {
  constexpr int64_t kBytes = (4 << 20) + 100;
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, Buffer::Allocate(kBytes));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (2 << 20), 0);
  std::memset(buffer->data(), 1, kBytes);  // All of it is there.
}

TEST(HostBackendTest, InjectedFailureIsReturned) {
  const ScopedFaultHook hook(
      [](absl::string_view point, absl::string_view object) {
        return point == "host.allocate" && object == "cpu"
                   ? absl::ResourceExhaustedError("planted")
                   : absl::OkStatus();
      });
  // Few bytes lie beside the buffer's own; many are the backend's.
  for (const int64_t bytes : {64, 1 << 20}) {
    EXPECT_THAT(Buffer::Allocate(bytes),
                StatusIs(absl::StatusCode::kResourceExhausted, "planted"));
  }
}

}  // namespace
}  // namespace rill
