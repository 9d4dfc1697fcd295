// SPDX-License-Identifier: Apache-2.0
#include "rill/device/has_ended.h"

#include <cstdint>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/testing/status_matchers.h"

namespace rill::device_internal {
namespace {

TEST(HasEndedTest, AnEventThatCannotBeAskedIsWaitedFor) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto memory,
      Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const uint8_t source = 5;
  RILL_ASSERT_OK(CopyAsync(memory->data(), &source, 1, stream));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  EXPECT_THAT(HasEnded(event), IsOkAndHolds(false));
  fake->FailCall(1, absl::UnavailableError("planted"));
  EXPECT_THAT(HasEnded(event), IsOkAndHolds(true));
  EXPECT_TRUE(fake->Recover());
  EXPECT_EQ(fake->NumPending(0, stream.handle()), 0);
}

TEST(HasEndedTest, AnErrorIsThatOfTheWork) {
  FakeBackend* const fake = FakeBackend::Install({});
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto memory,
      Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const uint8_t source = 5;
  fake->FailNext(FakeBackend::Operation::kCopy, 1,
                 absl::InternalError("planted"));
  RILL_ASSERT_OK(CopyAsync(memory->data(), &source, 1, stream));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  fake->RunAll();
  EXPECT_THAT(HasEnded(event),
              StatusIs(absl::StatusCode::kInternal, "planted"));
  EXPECT_THAT(stream.Synchronize(), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace rill::device_internal
