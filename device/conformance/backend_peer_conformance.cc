// SPDX-License-Identifier: Apache-2.0
// Copies between two devices of a type.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;

constexpr int64_t kBytes = 100000;

// The first device that `device` reaches; none in most machines.
std::optional<Device> PeerOf(Device device) {
  for (int index = 0;; ++index) {
    const Device peer = {device.type, index};
    if (peer == device) continue;
    const absl::StatusOr<bool> reaches = ReachesPeer(device, peer);
    if (!reaches.ok()) return std::nullopt;  // Behind the last.
    if (*reaches) return peer;
  }
}

TEST_P(BackendConformanceTest, APeerThatIsNotThereIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const int count, backend()->NumDevices());
  if (device().is_cpu()) GTEST_SKIP() << "the host has no peers";
  EXPECT_THAT(ReachesPeer(device(), {device().type, count}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(BackendConformanceTest, CopiesToAPeerAndBackBehindItsEvents) {
  const std::optional<Device> peer =
      device().is_cpu() ? std::nullopt : PeerOf(device());
  if (!peer.has_value()) GTEST_SKIP() << "reaches no other device";
  const std::shared_ptr<Buffer> here = New(kBytes);
  RILL_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Buffer> there,
                            Buffer::Allocate(kBytes, *peer, kind()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream own, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream peers, Stream::Create(*peer));
  for (uint8_t value = 1; value <= 10; ++value) {
    // It is filled here, copied there by this device, and back.
    RILL_ASSERT_OK(
        backend()->Fill(index(), here->data(), value, kBytes, own.handle()));
    RILL_ASSERT_OK(CopyAsync(there->data(), here->data(), kBytes, own));
    RILL_ASSERT_OK_AND_ASSIGN(const Event copied, Event::Record(own));
    RILL_ASSERT_OK(peers.WaitFor(copied));
    // Overwritten there, behind the event of this device.
    RILL_ASSERT_OK(backend()->Fill(peer->index, there->data(), value + 100,
                                   kBytes / 2, peers.handle()));
    RILL_ASSERT_OK_AND_ASSIGN(const Event filled, Event::Record(peers));
    RILL_ASSERT_OK(own.WaitFor(filled));
    RILL_ASSERT_OK(CopyAsync(here->data(), there->data(), kBytes, own));
    RILL_ASSERT_OK(own.Synchronize());
    const std::vector<uint8_t> back = Download(here->data(), kBytes);
    EXPECT_THAT(std::vector(back.begin(), back.begin() + kBytes / 2),
                Each(value + 100));
    EXPECT_THAT(std::vector(back.begin() + kBytes / 2, back.end()),
                Each(value));
  }
}

}  // namespace
}  // namespace rill
