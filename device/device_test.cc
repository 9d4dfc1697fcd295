// SPDX-License-Identifier: Apache-2.0
#include "rill/device/device.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceTest, ParsesWhatItPrints) {
  for (const Device device : {Device::Cpu(), Device::Cuda(0), Device::Cuda(17),
                              Device::Fake(0), Device::Fake(1)}) {
    EXPECT_THAT(Device::Parse(device.ToString()), IsOkAndHolds(device));
  }
  EXPECT_EQ(Device::Cuda(3).ToString(), "cuda:3");
  EXPECT_EQ(Device::Cpu().ToString(), "cpu");
}

TEST(DeviceTest, NameWithoutIndexIsTheFirst) {
  EXPECT_THAT(Device::Parse("cuda"), IsOkAndHolds(Device::Cuda(0)));
  EXPECT_THAT(Device::Parse("fake"), IsOkAndHolds(Device::Fake(0)));
}

TEST(DeviceTest, OtherTextsAreRefusedByName) {
  for (const char* text :
       {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1",
        "cuda:1 ", "cuda:x", "cuda:1:2", "cuda:99999999999", " cuda"}) {
    EXPECT_THAT(Device::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(std::string("\"") + text + "\""),
                               HasSubstr("\"cuda:N\""))))
        << text;
  }
}

TEST(DeviceTest, MemoryKindsHaveNames) {
  EXPECT_EQ(MemoryKindName(MemoryKind::kPageable), "pageable");
  EXPECT_EQ(MemoryKindName(MemoryKind::kPinned), "pinned");
  EXPECT_EQ(MemoryKindName(MemoryKind::kMappedFile), "mapped file");
  EXPECT_EQ(MemoryKindName(MemoryKind::kDevice), "device");
}

}  // namespace
}  // namespace rill
