// SPDX-License-Identifier: Apache-2.0
// The registry, in a program that links no backend but the host's.
#include "rill/device/backend.h"

#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(GetBackendTest, HostIsAlwaysThere) {
  RILL_ASSERT_OK_AND_ASSIGN(Backend* const host, GetBackend(Device::Cpu()));
  EXPECT_EQ(host->type(), Device::Type::kCpu);
  EXPECT_THAT(GetBackend(Device::Cpu()), IsOkAndHolds(host));
}

TEST(GetBackendTest, CudaThatIsNotLinkedSaysWhatToDo) {
  EXPECT_THAT(
      GetBackend(Device::Cuda(2)),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("cuda:2"), HasSubstr("built without CUDA"),
                     HasSubstr("--repo_env=RILL_CUDA=hermetic"),
                     HasSubstr("@rill//device/cuda:cuda_backend"))));
  EXPECT_THAT(Stream::Create(Device::Cuda()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(GetBackendTest, FakeThatIsNotLinkedSaysWhatToDo) {
  EXPECT_THAT(GetBackend(Device::Fake()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("//device/testing:fake_backend")));
}

TEST(GetBackendTest, CpuHasOneIndex) {
  EXPECT_THAT(
      GetBackend({Device::Type::kCpu, 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 1, want 0")));
}

}  // namespace
}  // namespace rill
