// SPDX-License-Identifier: Apache-2.0
// DenseStorage's guarantees about dedup_next that the suite does not check.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kWidth = 84 * 84 * 4;

// Steps first, first + 1, ... of a lane: a step sees its number, next/seen is
// the number of the step behind but at ends, one in `every`.
TensorDict Steps(int64_t first, int64_t count, int64_t every = 100,
                 int64_t width = kWidth) {
  TensorDict batch({count});
  auto seen = Tensor::Empty(DType::kUInt8, {count, width});
  auto next = Tensor::Empty(DType::kUInt8, {count, width});
  auto done = Tensor::Zeros(DType::kBool, {count, 1});
  EXPECT_THAT(seen, IsOk());
  EXPECT_THAT(next, IsOk());
  EXPECT_THAT(done, IsOk());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step = first + i;
    const bool is_end = step % every == every - 1;
    std::memset(seen->raw_data() + i * width, static_cast<int>(step % 251),
                width);
    std::memset(next->raw_data() + i * width,
                static_cast<int>(is_end ? 255 : (step + 1) % 251), width);
    done->data<bool>()[i] = is_end;
  }
  RILL_EXPECT_OK(batch.Set("seen", *std::move(seen)));
  RILL_EXPECT_OK(batch.Set("next/seen", *std::move(next)));
  RILL_EXPECT_OK(batch.Set("next/done", *std::move(done)));
  return batch;
}

std::unique_ptr<Storage> Make(const DenseStorage::Options& options) {
  return *DenseStorage::Create(options);
}

// The storage holds `rows` at slots 0, 1, ...
void ExpectHolds(const Storage& storage, const TensorDict& rows) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < rows.batch_shape()[0]; ++slot) {
    slots.push_back(slot);
  }
  ASSERT_EQ(storage.size(), rows.batch_shape()[0]);
  TensorDict got;
  RILL_ASSERT_OK(storage.Read(slots, &got));
  RILL_EXPECT_OK(got.CheckEqual(rows));
}

TEST(DedupStorageTest, WideRowsTakeHalf) {
  constexpr int64_t kCapacity = 1024;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    auto plain = Make({.capacity = kCapacity, .layout = layout});
    auto dedup =
        Make({.capacity = kCapacity, .layout = layout, .dedup_next = true});
    for (int64_t first = 0; first < 2 * kCapacity; first += 64) {
      const TensorDict batch = Steps(first, 64);
      if (first == 0) {
        RILL_ASSERT_OK(plain->Extend(batch).status());
      }
      RILL_ASSERT_OK(dedup->Extend(batch).status());
    }
    const StorageUsage usage = dedup->MemoryUsage();
    EXPECT_LT(usage.memory, plain->MemoryUsage().memory * 55 / 100);
    EXPECT_GE(usage.memory, plain->MemoryUsage().memory / 2);
    EXPECT_EQ(usage.full, usage.memory);
    EXPECT_EQ(usage.row, plain->MemoryUsage().row);
    EXPECT_GE(usage.memory + usage.saved, kCapacity * usage.row);
    ExpectHolds(*dedup, Steps(kCapacity, kCapacity));
  }
}

// Room that patches, ends and clears have taken is used again.
TEST(DedupStorageTest, OwnCopiesAreGivenBack) {
  auto storage = Make({.capacity = 2048, .dedup_next = true});
  RILL_ASSERT_OK(storage->Extend(Steps(0, 2048, 100, 4096)).status());
  RILL_ASSERT_OK(storage->Extend(Steps(2048, 512, 100, 4096)).status());
  const int64_t taken = storage->MemoryUsage().memory;
  for (int64_t round = 0; round < 20; ++round) {
    RILL_ASSERT_OK(
        storage->Extend(Steps(2560 + 512 * round, 512, 100, 4096)).status());
    const std::vector<Slot> slots = {7, 2047, 0, 100 * round, 8};
    TensorDict rows;
    RILL_ASSERT_OK(storage->Read(slots, &rows));
    RILL_ASSERT_OK(storage->WriteAt(slots, Steps(3, 5, 100, 4096)));
    RILL_ASSERT_OK(storage->WriteAt(slots, rows));
    if (round % 5 == 4) {
      RILL_ASSERT_OK(storage->Clear());
      RILL_ASSERT_OK(storage->Extend(Steps(0, 2048, 100, 4096)).status());
    }
  }
  EXPECT_LE(storage->MemoryUsage().memory, taken);
}

// Whatever the flags say: the last row of a trajectory that the collector did
// not mark, one that it did although the next row follows on, rows it skipped.
TEST(DedupStorageTest, BytesDecideNotFlags) {
  TensorDict batch = Steps(0, 12, /*every=*/4, /*width=*/16);
  auto done = Tensor::Zeros(DType::kBool, {12, 1});
  ASSERT_THAT(done, IsOk());
  done->data<bool>()[1] = true;
  RILL_ASSERT_OK(batch.Set("next/done", *std::move(done)));
  auto storage = Make({.capacity = 12, .dedup_next = true});
  RILL_ASSERT_OK(storage->Extend(batch).status());
  ExpectHolds(*storage, batch);
}

TEST(DedupStorageTest, MemoryThatCannotBeHadChangesNothing) {
  auto storage = Make({.capacity = 256, .dedup_next = true});
  const TensorDict rows = Steps(0, 256);
  RILL_ASSERT_OK(storage->Extend(rows).status());
  const int64_t taken = storage->MemoryUsage().memory;
  const TensorDict ends = Steps(0, 200, /*every=*/1);
  std::vector<Slot> odd;
  for (Slot slot = 1; slot < 256; slot += 2) odd.push_back(slot);
  const TensorDict patch = Steps(1000, 128, /*every=*/1);
  {
    const ScopedFaultHook hook("host.allocate",
                               absl::ResourceExhaustedError("injected"));
    EXPECT_THAT(storage->Extend(ends), IsResourceExhausted());
    EXPECT_THAT(storage->WriteAt(odd, patch), IsResourceExhausted());
  }
  EXPECT_EQ(storage->cursors()[0].written, 256);
  EXPECT_EQ(storage->MemoryUsage().memory, taken);
  ExpectHolds(*storage, rows);
  RILL_EXPECT_OK(storage->WriteAt(odd, patch));
  RILL_EXPECT_OK(storage->Extend(ends).status());
}

TEST(DedupStorageTest, SavesMoveBetweenStoragesWithAndWithout) {
  const std::string directory = JoinPath(::testing::TempDir(), "dedup_saved");
  constexpr int64_t kCapacity = 700;  // Some pieces of 16 MiB.
  const TensorDict rows = Steps(0, kCapacity, /*every=*/7);
  for (const bool from_dedup : {false, true}) {
    auto from = Make({.capacity = kCapacity, .dedup_next = from_dedup});
    RILL_ASSERT_OK(from->Extend(Steps(5, 20)).status());
    RILL_ASSERT_OK(from->Clear());
    RILL_ASSERT_OK(from->Extend(rows).status());
    RILL_ASSERT_OK(from->Save(directory));
    auto to = Make({.capacity = kCapacity, .dedup_next = !from_dedup});
    RILL_ASSERT_OK(to->Extend(Steps(3, 30)).status());
    RILL_ASSERT_OK(to->Load(directory));
    ExpectHolds(*to, rows);
    if (from_dedup) continue;
    const StorageUsage usage = to->MemoryUsage();
    EXPECT_LT(usage.memory, kCapacity * usage.row * 65 / 100);
  }
}

TEST(DedupStorageTest, RowsOnADeviceAreRefusedPinnedOnesAreNot) {
  EXPECT_THAT(
      DenseStorage::Create(
          {.capacity = 4, .device = Device::Fake(0), .dedup_next = true}),
      IsInvalidArgument("Options::dedup_next: got true on fake:0"));
  FakeBackend::Install({});
  auto pinned = Make({.capacity = 4,
                      .device = Device::Fake(0),
                      .memory_kind = MemoryKind::kPinned,
                      .dedup_next = true});
  RILL_ASSERT_OK(pinned->Extend(Steps(0, 4)).status());
  ExpectHolds(*pinned, Steps(0, 4));
}

TEST(DedupStorageTest, LeavesThatEventsReportStay) {
  TensorDict batch({2});
  auto ids = Tensor::Zeros(DType::kInt64, {2});
  ASSERT_THAT(ids, IsOk());
  RILL_ASSERT_OK(batch.Set("ids", *ids));
  RILL_ASSERT_OK(batch.Set("next/ids", *ids));
  auto storage = Make({.capacity = 4,
                       .event_keys = {.trajectories = {"next/ids"}},
                       .dedup_next = true});
  RILL_ASSERT_OK(storage->Extend(batch).status());
  EXPECT_EQ(storage->MemoryUsage().saved, 0);
  RILL_EXPECT_OK(storage->Lease({0, 2}).status());  // Nothing is left out.
}

}  // namespace
}  // namespace rill
