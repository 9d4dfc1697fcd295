// SPDX-License-Identifier: Apache-2.0
#include "rill/device/has_ended.h"

#include <cstdint>
#include <memory>
#include <optional>

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

// An event behind a copy, which the fake device has not carried out.
class HasEndedTest : public ::testing::Test {
 protected:
  void RecordBehindACopy() {
    RILL_ASSERT_OK_AND_ASSIGN(
        memory_, Buffer::Allocate(1, Device::Fake(), MemoryKind::kDevice));
    RILL_ASSERT_OK_AND_ASSIGN(stream_, Stream::Create(Device::Fake()));
    RILL_ASSERT_OK(CopyAsync(memory_->data(), &source_, 1, *stream_));
    RILL_ASSERT_OK_AND_ASSIGN(event_, Event::Record(*stream_));
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
  const uint8_t source_ = 5;
  std::shared_ptr<Buffer> memory_;
  std::optional<Stream> stream_;
  std::optional<Event> event_;
};

TEST_F(HasEndedTest, AnEventThatCannotBeAskedIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(RecordBehindACopy());
  EXPECT_THAT(HasEnded(*event_), IsOkAndHolds(false));
  fake_->FailCall(1, absl::UnavailableError("planted"));
  EXPECT_THAT(HasEnded(*event_), IsOkAndHolds(true));
  EXPECT_TRUE(fake_->Recover());
  EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 0);
}

TEST_F(HasEndedTest, AnErrorIsThatOfTheWork) {
  fake_->FailNext(FakeBackend::Operation::kCopy, 1,
                  absl::InternalError("planted"));
  ASSERT_NO_FATAL_FAILURE(RecordBehindACopy());
  fake_->RunAll();
  EXPECT_THAT(HasEnded(*event_),
              StatusIs(absl::StatusCode::kInternal, "planted"));
  EXPECT_THAT(stream_->Synchronize(), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace rill::device_internal
