// SPDX-License-Identifier: Apache-2.0
#include "rill/device/buffer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

TEST(BufferTest, IsPageableHostMemoryByDefault) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto buffer, Buffer::Allocate(100));
  EXPECT_EQ(buffer->size_bytes(), 100);
  EXPECT_EQ(buffer->device(), Device::Cpu());
  EXPECT_EQ(buffer->memory_kind(), MemoryKind::kPageable);
  EXPECT_TRUE(buffer->is_writable());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0);
}

// One allocation for both: a dictionary is made of many small leaves.
TEST(BufferTest, FewBytesLieBesideTheirBuffer) {
  std::vector<std::shared_ptr<Buffer>> held;
  for (int i = 0; i < 8; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(held.emplace_back(), Buffer::Allocate(16 * 1024));
    EXPECT_LT(reinterpret_cast<uintptr_t>(held.back()->data()) -
                  reinterpret_cast<uintptr_t>(held.back().get()),
              256);
  }
}

// Little and much memory are made in different ways.
TEST(BufferTest, BytesOfEverySizeAreAlignedAndTheUsersOwn) {
  for (const int64_t bytes : {1, 63, 64, 65, 1000, 1024, 16 * 1024 - 1,
                              16 * 1024, 16 * 1024 + 1, 5 << 20}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto buffer, Buffer::Allocate(bytes));
    EXPECT_EQ(buffer->size_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0) << bytes;
    std::memset(buffer->data(), 0xA5, bytes);
    const std::weak_ptr<Buffer> watch = buffer;
    auto second = buffer;
    buffer.reset();
    EXPECT_EQ(second->data()[bytes - 1], std::byte{0xA5});
    EXPECT_EQ(second->device(), Device::Cpu());
    second.reset();
    EXPECT_TRUE(watch.expired());
  }
}

TEST(BufferTest, LentBytesAreTheOwnersAndStayAsLongAsTheyAreLent) {
  RILL_ASSERT_OK_AND_ASSIGN(auto owner, Buffer::Allocate(100));
  const auto lent = Buffer::Lend(owner);
  EXPECT_TRUE(lent->is_lent());
  EXPECT_FALSE(owner->is_lent());
  EXPECT_EQ(lent->data(), owner->data());
  EXPECT_EQ(lent->size_bytes(), 100);
  const std::weak_ptr<Buffer> watch = owner;
  owner.reset();
  EXPECT_FALSE(watch.expired());
}

TEST(BufferTest, EmptyBufferHasNoData) {
  for (const MemoryKind kind :
       {MemoryKind::kPageable, MemoryKind::kPinned, MemoryKind::kDevice}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto buffer,
                              Buffer::Allocate(0, Device::Fake(), kind));
    EXPECT_EQ(buffer->data(), nullptr);
    EXPECT_EQ(buffer->size_bytes(), 0);
  }
}

TEST(BufferTest, OnlyDeviceMemoryIsOnTheDevice) {
  FakeBackend* const fake = FakeBackend::Install({});
  const Device device = Device::Fake(1);
  {
    const auto on_device = *Buffer::Allocate(8, device, MemoryKind::kDevice);
    const auto pinned = *Buffer::Allocate(8, device, MemoryKind::kPinned);
    const auto pageable = *Buffer::Allocate(8, device, MemoryKind::kPageable);
    EXPECT_EQ(on_device->device(), device);
    EXPECT_EQ(pinned->device(), Device::Cpu());
    EXPECT_EQ(pinned->memory_kind(), MemoryKind::kPinned);
    EXPECT_EQ(pageable->device(), Device::Cpu());
    EXPECT_EQ(pageable->memory_kind(), MemoryKind::kPageable);
    EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kDevice), 1);
    EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kPinned), 1);
  }
  EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kDevice), 0);
  EXPECT_EQ(fake->NumAllocations(1, MemoryKind::kPinned), 0);
}

TEST(BufferTest, SizesAndKindsThatMakeNoSenseAreRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Buffer::Allocate(-1), StatusIs(invalid, HasSubstr("got -1")));
  EXPECT_THAT(Buffer::Allocate(1, Device::Cpu(), MemoryKind::kDevice),
              StatusIs(invalid, HasSubstr("got cpu")));
  EXPECT_THAT(Buffer::Allocate(1, Device::Cpu(), MemoryKind::kPinned),
              StatusIs(invalid, HasSubstr("pinned")));
  EXPECT_THAT(Buffer::Allocate(1, Device::Cpu(), MemoryKind::kMappedFile),
              StatusIs(invalid, HasSubstr("Buffer::Wrap")));
  EXPECT_THAT(Buffer::Allocate(1, Device::Fake(9), MemoryKind::kDevice),
              StatusIs(invalid, HasSubstr("fake:9")));
}

TEST(BufferTest, WrappedMemoryKeepsItsOwnerAlive) {
  auto owner = std::make_shared<int64_t>(5);
  const std::weak_ptr<int64_t> watch = owner;
  int64_t* const data = owner.get();
  auto buffer = Buffer::Wrap(data, sizeof(int64_t), Device::Cpu(),
                             MemoryKind::kMappedFile, std::move(owner), false);
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(static_cast<void*>(buffer->data()), data);
  EXPECT_EQ(buffer->size_bytes(), 8);
  EXPECT_EQ(buffer->memory_kind(), MemoryKind::kMappedFile);
  EXPECT_FALSE(buffer->is_writable());
  buffer.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace rill
