// SPDX-License-Identifier: Apache-2.0

// Memory of Rill's CUDA device, worked on by a kernel of this project.

#include <cstdint>

#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "scale_kernels.h"

namespace {

TEST(CudaDeviceTest, OwnKernelWorksOnRillsMemory) {
  auto backend = rill::GetBackend(rill::Device::Cuda());
  if (!backend.ok()) GTEST_SKIP() << backend.status();
  constexpr int64_t kBytes = 2 * sizeof(float);
  // Pinned: the host and the device see the same bytes.
  auto memory = (*backend)->Allocate(0, rill::MemoryKind::kPinned, kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  float* x = static_cast<float*>(*memory);
  x[0] = 1;
  x[1] = -2;
  EXPECT_EQ(rover::Scale(x, 2, 3.0f), 0);
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(x[1], -6);
  (*backend)->Free(0, rill::MemoryKind::kPinned, memory.value(), kBytes);
}

}  // namespace
