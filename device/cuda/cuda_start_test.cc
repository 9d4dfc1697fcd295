// SPDX-License-Identifier: Apache-2.0
// When the driver is started, and how it fails: beside a stand-in for the
// driver that has no device and writes calls down, so no GPU is needed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/cuda_record.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CudaStartTest : public ::testing::Test {
 protected:
  void TearDown() override { ForgetCudaCalls(); }
};

TEST_F(CudaStartTest, FirstUseStartsTheDriverAndNoDeviceIsAClearStatus) {
  EXPECT_THAT(CudaCalls(), IsEmpty());
  EXPECT_THAT(GetBackend(Device::Cuda()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cudaError"), HasSubstr("use cpu"))));
  EXPECT_THAT(CudaCalls(), Contains("cuInit"));
}

TEST_F(CudaStartTest, EveryWayInFailsWithTheSameStatus) {
  const auto no_device =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cudaError"));
  EXPECT_THAT(Buffer::Allocate(8, Device::Cuda(), MemoryKind::kDevice),
              no_device);
  EXPECT_THAT(Buffer::Allocate(8, Device::Cuda(), MemoryKind::kPinned),
              no_device);
  EXPECT_THAT(Stream::Create(Device::Cuda()), no_device);
  int a = 1, b = 2;
  EXPECT_THAT(CopyBlocking(&a, &b, 4, Device::Cuda()), no_device);
  EXPECT_EQ(a, 1);
}

TEST_F(CudaStartTest, ChildOfAForkAfterTheStartIsRefused) {
  GetBackend(Device::Cuda()).status().IgnoreError();
  const pid_t child = fork();
  if (child == 0) {
    int value = 0;
    const absl::Status refused[] = {
        GetBackend(Device::Cuda()).status(),
        Buffer::Allocate(8, Device::Cuda(), MemoryKind::kDevice).status(),
        Buffer::Allocate(8, Device::Cuda(), MemoryKind::kPinned).status(),
        Stream::Create(Device::Cuda()).status(),
        CopyBlocking(&value, &value, 0, Device::Cuda())};
    _exit(std::all_of(std::begin(refused), std::end(refused),
                      [](const absl::Status& status) {
                        return absl::IsFailedPrecondition(status) &&
                               absl::StrContains(status.message(), "forked");
                      })
              ? 0
              : 1);
  }
  int result = 0;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace rill
