// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_CONFORMANCE_BACKEND_CONFORMANCE_H_
#define RILL_DEVICE_CONFORMANCE_BACKEND_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"

namespace rill {

// The contract of Backend as a test suite; fake_backend_conformance_test.cc has
// backends that it refuses. A backend's own test links this
// library and says
//   INSTANTIATE_BACKEND_CONFORMANCE(Host, {Device::Cpu()});
// A case whose `skip_reason` is not empty is skipped with it (no such device in
// this machine).
struct BackendCase {
  Device device;
  std::function<std::string()> skip_reason = nullptr;
};

inline std::ostream& operator<<(std::ostream& os, const BackendCase& c) {
  return os << c.device.ToString();
}

class BackendConformanceTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;

  Device device() const { return GetParam().device; }
  int index() const { return device().index; }
  Backend* backend() const { return backend_; }
  // The kind that the device's kernels work on.
  MemoryKind kind() const {
    return device().is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice;
  }

  // Memory of the device, new or with `bytes` in it; a failure fails the test
  // and gives null.
  std::shared_ptr<Buffer> New(int64_t bytes);
  std::shared_ptr<Buffer> Upload(absl::Span<const uint8_t> bytes);
  std::vector<uint8_t> Download(const void* data, int64_t bytes);

 private:
  Backend* backend_ = nullptr;
};

#define INSTANTIATE_BACKEND_CONFORMANCE(name, ...)       \
  INSTANTIATE_TEST_SUITE_P(name, BackendConformanceTest, \
                           ::testing::Values(BackendCase __VA_ARGS__))

}  // namespace rill

#endif  // RILL_DEVICE_CONFORMANCE_BACKEND_CONFORMANCE_H_
