// SPDX-License-Identifier: Apache-2.0
#include "rill/device/current_stream.h"

#include <thread>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

void* HandleOf(Device device) {
  absl::StatusOr<Stream> stream = CurrentStream(device);
  RILL_EXPECT_OK(stream.status());
  return stream.ok() ? stream->handle().value : nullptr;
}

TEST(CurrentStreamTest, IsTheDefaultOneWithoutAScope) {
  EXPECT_EQ(HandleOf(Device::Fake()), nullptr);
  RILL_ASSERT_OK_AND_ASSIGN(const Stream host, CurrentStream(Device::Cpu()));
  EXPECT_TRUE(host.device().is_cpu());
}

TEST(CurrentStreamTest, IsThatOfTheInnermostScopeOfItsDeviceAndThread) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream outer, Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream inner, Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                            Stream::Create(Device::Fake(1)));
  const StreamScope outer_scope(outer);
  {
    const StreamScope inner_scope(inner);
    const StreamScope other_scope(other);
    EXPECT_EQ(HandleOf(Device::Fake()), inner.handle().value);
    EXPECT_EQ(HandleOf(Device::Fake(1)), other.handle().value);
    std::thread([] { EXPECT_EQ(HandleOf(Device::Fake()), nullptr); }).join();
  }
  EXPECT_EQ(HandleOf(Device::Fake()), outer.handle().value);
  EXPECT_EQ(HandleOf(Device::Fake(1)), nullptr);
}

TEST(CurrentStreamTest, MayBeTheDefaultStreamWithinAnotherScope) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream outer, Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream plain,
                            Stream::Default(Device::Fake()));
  const StreamScope outer_scope(outer);
  const StreamScope plain_scope(plain);
  EXPECT_EQ(HandleOf(Device::Fake()), nullptr);
}

}  // namespace
}  // namespace rill
