// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_TESTING_FAKE_DEVICE_TEST_H_
#define RILL_DEVICE_TESTING_FAKE_DEVICE_TEST_H_

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/testing/fake_backend.h"

namespace rill {

// A test with a FakeBackend of its own. Behind it nothing was misused, and
// nothing is left on fake:0: a test that keeps things frees them before.
class FakeDeviceTest : public ::testing::Test {
 protected:
  explicit FakeDeviceTest(const FakeBackend::Options& options = {})
      : fake_(FakeBackend::Install(options)) {}

  void TearDown() override {
    EXPECT_THAT(fake_->TakeMisuse(), ::testing::IsEmpty());
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
  }

  // How often the host has waited since StartCalls.
  int64_t TakeWaits() {
    using Kind = FakeBackend::Call::Kind;
    int64_t waits = 0;
    for (const FakeBackend::Call& call : fake_->TakeCalls()) {
      waits += call.kind == Kind::kSynchronizeStream ||
               call.kind == Kind::kSynchronizeEvent;
    }
    return waits;
  }

  FakeBackend* fake_;
};

}  // namespace rill

#endif  // RILL_DEVICE_TESTING_FAKE_DEVICE_TEST_H_
