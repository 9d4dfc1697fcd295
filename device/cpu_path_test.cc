// SPDX-License-Identifier: Apache-2.0
// The host's way through the package never touches CUDA: the program runs
// beside a driver that writes down when it is loaded or called (cuda_record.h).
// With CUDA linked in, device/cuda runs the same file.
#include <cstring>
#include <vector>

#include "absl/status/status.h"
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

using ::testing::IsEmpty;

TEST(CpuPathTest, NamingADeviceTouchesNoDriver) {
  RILL_ASSERT_OK_AND_ASSIGN(const Device device, Device::Parse("cuda:0"));
  EXPECT_EQ(device.ToString(), "cuda:0");
  RILL_EXPECT_OK(GetBackend(Device::Cpu()));
  EXPECT_THAT(CudaCalls(), IsEmpty());
}

TEST(CpuPathTest, BuffersStreamsAndCopiesOfTheHostTouchNoDriver) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto table, Buffer::Allocate(5 << 20));
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, Buffer::Allocate(64));
  std::memset(table->data(), 3, table->size_bytes());
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(Device::Cpu()));
  RILL_ASSERT_OK_AND_ASSIGN(Backend* const host, GetBackend(Device::Cpu()));
  const RowColumn column = {table->data(), 8, batch->data(), 8, 8};
  const std::vector<int64_t> rows = {1, 2, 3};
  RILL_ASSERT_OK(host->GatherRows(0, {column}, rows, stream.handle()));
  RILL_ASSERT_OK(host->ScatterRows(0, {column}, rows, stream.handle()));
  RILL_ASSERT_OK(CopyAsync(batch->data(), table->data(), 64, stream));
  RILL_ASSERT_OK(host->Fill(0, batch->data(), 1, 64, stream.handle()));
  RILL_ASSERT_OK_AND_ASSIGN(const Event event, Event::Record(stream));
  RILL_ASSERT_OK(stream.WaitFor(event));
  RILL_ASSERT_OK(event.Synchronize());
  RILL_ASSERT_OK(stream.Synchronize());
  RILL_ASSERT_OK(CopyBlocking(table->data(), batch->data(), 64, Device::Cpu()));
  EXPECT_THAT(CudaCalls(), IsEmpty());
}

TEST(CpuPathTest, RefusedRequestsOfTheHostTouchNoDriver) {
  EXPECT_THAT(Buffer::Allocate(64, Device::Cpu(), MemoryKind::kPinned),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CudaCalls(), IsEmpty());
}

}  // namespace
}  // namespace rill
