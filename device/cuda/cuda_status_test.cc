// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/cuda_status.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::cuda_internal {
namespace {

using ::testing::HasSubstr;

TEST(CudaStatusTest, OnlyAnErrorThatNoCallCanFollowLosesTheDevice) {
  WorkOn(0);
  EXPECT_THAT(CudaStatus(cudaErrorMemoryAllocation, "Allocate"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  RILL_EXPECT_OK(TheLostDevices().Check(0));
  EXPECT_THAT(CudaStatus(cudaErrorIllegalAddress, "Record"),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(
      TheLostDevices().Check(0),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("CudaBackend::Record")));
  RILL_EXPECT_OK(TheLostDevices().Check(1));
}

}  // namespace
}  // namespace rill::cuda_internal
