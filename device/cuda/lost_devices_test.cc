// SPDX-License-Identifier: Apache-2.0
#include "rill/device/cuda/lost_devices.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LostDevicesTest, TheFirstErrorIsThatOfAllLaterCallsOfTheDevice) {
  LostDevices lost;
  RILL_EXPECT_OK(lost.Check(0));
  lost.Add(1, absl::InternalError("an illegal address"));
  lost.Add(1, absl::UnavailableError("something else"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        lost.Check(1),
        StatusIs(absl::StatusCode::kInternal,
                 AllOf(HasSubstr("cuda:1"), HasSubstr("an illegal address"),
                       HasSubstr("start the process again"))));
  }
  RILL_EXPECT_OK(lost.Check(0));
}

}  // namespace
}  // namespace rill
