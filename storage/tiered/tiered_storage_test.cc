// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/tiered_storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Storage> Below(int64_t capacity, int64_t lanes = 1) {
  return *DenseStorage::Create({.capacity = capacity, .lanes = lanes});
}

std::unique_ptr<TieredStorage> Make(std::unique_ptr<Storage> below,
                                    int64_t fast_capacity,
                                    Device device = Device::Cpu(),
                                    bool fill = false) {
  return *TieredStorage::Create({.below = std::move(below),
                                 .fast_capacity = fast_capacity,
                                 .device = device,
                                 .fill = fill});
}

TensorDict RowsFrom(int64_t first, int64_t count) {
  return ConformanceRows({count}, SlotsFrom(first, count));
}

// Rows `ids` are what these slots hold, and so many came from the fast tier.
void ExpectRows(const TieredStorage& storage, const std::vector<Slot>& slots,
                const std::vector<int64_t>& ids, int64_t from_fast) {
  const TieredStorage::Stats before = storage.GetStats();
  TensorDict rows;
  RILL_ASSERT_OK(storage.Read(slots, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(
      ConformanceRows({static_cast<int64_t>(ids.size())}, ids)));
  rows.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_EQ(leaf.device(), storage.device()) << key;
  });
  const TieredStorage::Stats after = storage.GetStats();
  EXPECT_EQ(after.fast_rows - before.fast_rows, from_fast);
  EXPECT_EQ(after.slow_rows - before.slow_rows,
            static_cast<int64_t>(slots.size()) - from_fast);
}

absl::Status RunExample(const std::string& directory, Device device,
                        const TensorDict& batch, const std::vector<Slot>& slots,
                        TensorDict* rows) {
  RILL_ASSIGN_OR_RETURN(
      auto files,
      MemmapStorage::Create({.directory = directory, .capacity = 100}));
  RILL_ASSIGN_OR_RETURN(
      auto storage,
      TieredStorage::Create(
          {.below = std::move(files), .fast_capacity = 10, .device = device}));
  RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
  return storage->Read(slots, rows);
}

TEST(TieredStorageTest, Example) {
  TensorDict rows;
  RILL_ASSERT_OK(RunExample(FreshPath("example"), Device::Fake(0),
                            RowsFrom(0, 30), {29, 3}, &rows));
  EXPECT_EQ(rows.Find("action")->device(), Device::Fake(0));
  RILL_EXPECT_OK(
      rows.CheckEqual(ConformanceRows({2}, std::vector<int64_t>{29, 3})));
}

TEST(TieredStorageTest, TheNewestRowsComeFromTheFastTierInTheirPlaces) {
  for (const Device device : {Device::Cpu(), Device::Fake(0)}) {
    const auto storage = Make(Below(20), 6, device);
    RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 15)));
    // Steps 9 to 14 are above.
    ExpectRows(*storage, {9, 14, 11, 9}, {9, 14, 11, 9}, 4);
    ExpectRows(*storage, {8, 0, 3}, {8, 0, 3}, 0);
    ExpectRows(*storage, {2, 14, 0, 10, 2, 12}, {2, 14, 0, 10, 2, 12}, 3);
    RILL_ASSERT_OK(storage->Extend(RowsFrom(15, 8)));  // The ring wraps.
    ExpectRows(*storage, {2, 1, 0, 19, 17, 16, 3, 15},
               {22, 21, 20, 19, 17, 16, 3, 15}, 5);
    // Written over in place, in both tiers or below alone.
    RILL_ASSERT_OK(storage->WriteAt(
        {5, 18, 1}, ConformanceRows({3}, std::vector<int64_t>{50, 51, 52})));
    ExpectRows(*storage, {18, 5, 1, 2}, {51, 50, 52, 22}, 3);
    RILL_ASSERT_OK(storage->WriteAt({18, 18}, RowsFrom(60, 2)));
    ExpectRows(*storage, {18}, {61}, 1);
    EXPECT_EQ(storage->GetStats().failed_writes, 0);
  }
}

TEST(TieredStorageTest, EventKeysAreThoseOfTheStorageBelow) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto below,
      DenseStorage::Create({.capacity = 4, .event_keys = {.ends = {"stop"}}}));
  const auto storage = Make(std::move(below), 2);
  EXPECT_EQ(storage->traits().event_keys.ends,
            std::vector<std::string>{"stop"});
}

TEST(TieredStorageTest, BytesThatMoveAreCounted) {
  const auto storage = Make(Below(20), 6, Device::Fake(0));
  RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 15)));
  const int64_t row = storage->MemoryUsage().row;
  EXPECT_EQ(storage->GetStats().bytes_written, 6 * row);
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({14, 3, 4}, &rows));
  EXPECT_EQ(storage->GetStats().bytes_fetched, 2 * row);
  RILL_ASSERT_OK(storage->ReadLeaves({14, 3, 4}, {"action"}, &rows));
  EXPECT_EQ(storage->GetStats().bytes_fetched, 2 * row + 2 * 8);
  RILL_ASSERT_OK(storage->WriteAt(
      {0, 14}, ConformanceRows({2}, SlotsFrom(0, 2),
                               {ConformanceLeafNumber("action")})));
  EXPECT_EQ(storage->GetStats().bytes_written, 6 * row + 8);
  // The rows below, and six above.
  EXPECT_GE(storage->MemoryUsage().memory, 26 * row);
}

TEST(TieredStorageTest, ASteadyReadTakesNoNewMemory) {
  FakeBackend* const fake = FakeBackend::Install({});
  const auto storage = Make(Below(40), 10, Device::Fake(0));
  RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 40)));
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({39, 2, 3, 4}, &rows));
  const std::byte* const data = rows.Find("observation")->raw_data();
  const int64_t before = fake->Count(FakeBackend::Operation::kAllocate);
  RILL_ASSERT_OK(storage->Read({5, 38, 7, 37}, &rows));
  RILL_ASSERT_OK(storage->Read({5, 8, 7, 6}, &rows));
  RILL_ASSERT_OK(storage->Read({35, 38, 37, 36}, &rows));
  EXPECT_EQ(rows.Find("observation")->raw_data(), data);
  // The second has one row more on its way than any before.
  EXPECT_LE(fake->Count(FakeBackend::Operation::kAllocate) - before, 1);
}

TEST(TieredStorageTest, AReadNeverWritesIntoRowsThatAreLent) {
  // Columns, so that leases may serve as a batch.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto below,
      DenseStorage::Create({.capacity = 6, .layout = StorageLayout::kColumns}));
  const auto storage = Make(std::move(below), 3);
  RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 6)));
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease lease, storage->Lease({0, 2}));
  TensorDict out = lease.rows();
  RILL_ASSERT_OK(storage->Read({4, 5}, &out));
  RILL_EXPECT_OK(out.CheckEqual(RowsFrom(4, 2)));
  EXPECT_TRUE(lease.valid());
  RILL_EXPECT_OK(lease.rows().CheckEqual(RowsFrom(0, 2)));
}

// --- A fast tier that fails --------------------------------------------------

TEST(TieredStorageTest, WhatTheFastTierCannotTakeIsReadFromBelow) {
  FakeBackend* const fake = FakeBackend::Install({});
  const auto storage = Make(Below(20), 6, Device::Fake(0));
  RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 3)));
  fake->RunAll();
  const auto fail_next = [fake](FakeBackend::Operation operation) {
    fake->FailNext(operation, 1, absl::InternalError("bus"));
  };
  const auto recover = [fake] {
    fake->RunAll();
    fake->Recover();
  };
  // At once.
  fake->FailCall(2, absl::InternalError("bus"));
  RILL_ASSERT_OK(storage->Extend(RowsFrom(3, 4)));
  EXPECT_TRUE(fake->Recover());
  EXPECT_EQ(storage->GetStats().failed_writes, 1);
  EXPECT_THAT(storage->GetStats().last_failure, IsInternal("bus"));
  ExpectRows(*storage, {0, 6, 3, 1}, {0, 6, 3, 1}, 0);
  // Later: the next write receives the error.
  fail_next(FakeBackend::Operation::kScatterRows);
  RILL_ASSERT_OK(storage->Extend(RowsFrom(7, 2)));
  recover();
  ExpectRows(*storage, {0, 8, 7, 6}, {0, 8, 7, 6}, 0);
  RILL_ASSERT_OK(storage->Extend(RowsFrom(9, 1)));
  EXPECT_EQ(storage->GetStats().failed_writes, 2);
  ExpectRows(*storage, {9, 8, 7}, {9, 8, 7}, 0);
  RILL_ASSERT_OK(storage->Extend(RowsFrom(10, 2)));
  ExpectRows(*storage, {10, 11, 7, 6}, {10, 11, 7, 6}, 2);
  fail_next(FakeBackend::Operation::kScatterRows);
  RILL_ASSERT_OK(storage->WriteAt({11}, RowsFrom(70, 1)));
  recover();
  ExpectRows(*storage, {11, 10}, {70, 10}, 0);
  RILL_ASSERT_OK(storage->WriteAt({11}, RowsFrom(71, 1)));
  EXPECT_EQ(storage->GetStats().failed_writes, 3);
  ExpectRows(*storage, {11, 10}, {71, 10}, 0);
  // A read that fails, behind memory for the batch and a look at the write.
  RILL_ASSERT_OK(storage->Extend(RowsFrom(12, 2)));
  fake->RunAll();
  fake->FailCall(3, absl::InternalError("bus"));
  ExpectRows(*storage, {12, 13, 0}, {12, 13, 0}, 0);
  EXPECT_TRUE(fake->Recover());
  // With the device goes the batch.
  fail_next(FakeBackend::Operation::kGatherRows);
  TensorDict batch;
  EXPECT_THAT(storage->Read({12, 13, 0}, &batch), IsInternal("bus"));
  recover();
  ExpectRows(*storage, {12, 13, 0}, {12, 13, 0}, 2);
}

TEST(TieredStorageTest, AFastTierThatDoesNotFitIsNoneAndSaysWhy) {
  FakeBackend::Install({.memory_limit_bytes = 8 << 10});
  {
    const auto storage = Make(Below(1000), 1000, Device::Fake(0));
    RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 5)));
    EXPECT_THAT(storage->GetStats().last_failure, IsResourceExhausted());
    ExpectRows(*storage, {0, 4}, {0, 4}, 0);
    // Where the rows are known it is refused at once.
    auto below = Below(1000);
    RILL_ASSERT_OK(below->Extend(RowsFrom(0, 5)));
    EXPECT_THAT(TieredStorage::Create({.below = std::move(below),
                                       .fast_capacity = 1000,
                                       .device = Device::Fake(0)}),
                IsResourceExhausted("fast tier"));
  }
  FakeBackend::Install({});
}

TEST(TieredStorageTest, WhatTheStorageBelowRefusesTheFastTierNeverSees) {
  const auto storage = Make(Below(8), 4, Device::Fake(0));
  RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 6)));
  TensorDict bad = RowsFrom(6, 3);
  RILL_ASSERT_OK(bad.Delete("action"));
  EXPECT_THAT(storage->Extend(bad), IsInvalidArgument());
  EXPECT_THAT(storage->WriteAt({7}, RowsFrom(0, 1)), IsOutOfRange());
  ExpectRows(*storage, {2, 3, 4, 5}, {2, 3, 4, 5}, 4);
}

// --- Opening, loading --------------------------------------------------------

TEST(TieredStorageTest, AnOpenedStorageStartsEmptyAboveOrFilled) {
  const std::string directory = FreshPath("opened");
  for (const int64_t steps : {5, 23}) {
    RILL_ASSERT_OK(RemoveAll(directory));
    {
      RILL_ASSERT_OK_AND_ASSIGN(
          auto files,
          MemmapStorage::Create(
              {.directory = directory, .capacity = 20, .lanes = 2}));
      RILL_ASSERT_OK(
          files->Extend(ConformanceRows({2, steps}, SlotsFrom(0, 2 * steps))));
      RILL_ASSERT_OK(files->Extend(ConformanceRows({1, 1}, SlotsFrom(90, 1)),
                                   {.first_lane = 1}));
    }
    const Slot newest = (steps - 1) % 10;
    for (const bool fill : {false, true}) {
      RILL_ASSERT_OK_AND_ASSIGN(auto files,
                                MemmapStorage::Open({.directory = directory}));
      const auto storage = Make(std::move(files), 8, Device::Fake(0), fill);
      ExpectRows(*storage, {newest, 10 + (newest + 1) % 10, newest - 1},
                 {steps - 1, 90, steps - 2}, fill ? 3 : 0);
    }
  }
}

TEST(TieredStorageTest, AFilledLaneMayBeLongerThanAPieceOfTheFilling) {
  auto below = Below(5000);
  RILL_ASSERT_OK(below->Extend(RowsFrom(0, 6000)));
  const auto storage = Make(std::move(below), 3000, Device::Cpu(), true);
  ExpectRows(*storage, {999, 0, 4999, 3000, 2999, 1000},
             {5999, 5000, 4999, 3000, 2999, 1000}, 4);
}

TEST(TieredStorageTest, ALoadedOneIsFilledAgain) {
  const std::string directory = FreshPath("saved");
  const auto saved = Make(Below(20), 6);
  RILL_ASSERT_OK(saved->Extend(RowsFrom(100, 7)));
  RILL_ASSERT_OK(saved->Save(directory));
  for (const bool fill : {false, true}) {
    const auto storage = Make(Below(20), 6, Device::Fake(0), fill);
    RILL_ASSERT_OK(storage->Extend(RowsFrom(0, 9)));
    RILL_ASSERT_OK(storage->Load(directory));
    ExpectRows(*storage, {0, 1, 6}, {100, 101, 106}, fill ? 2 : 0);
    RILL_ASSERT_OK(storage->Clear());
    RILL_ASSERT_OK(storage->Extend(RowsFrom(40, 2)));
    ExpectRows(*storage, {0, 1}, {40, 41}, 2);
  }
}

// --- Errors ------------------------------------------------------------------

TEST(TieredStorageTest, OptionsThatCannotBeAreRefused) {
  const auto refused = [](TieredStorage::Options options,
                          absl::string_view what) {
    EXPECT_THAT(TieredStorage::Create(std::move(options)),
                IsInvalidArgument(what));
  };
  refused({}, "below: got null");
  RILL_ASSERT_OK_AND_ASSIGN(
      auto on_device,
      DenseStorage::Create({.capacity = 4, .device = Device::Fake(0)}));
  refused({.below = std::move(on_device), .fast_capacity = 2},
          "below: got a storage on fake:0");
  for (const int64_t capacity : {0, -2, 3, 10}) {
    refused({.below = Below(8, 2), .fast_capacity = capacity},
            "want a multiple of lanes = 2 in [2, 8]");
  }
  refused({.below = Below(8),
           .fast_capacity = 4,
           .memory_kind = MemoryKind::kPinned},
          "memory_kind");
}

// TorchRL's memory-mapped storage met a GPU and failed obscurely.
TEST(TieredStorageTest, AMemmapAskedForADeviceNamesTheWayOut) {
  EXPECT_THAT(MemmapStorage::Create({.directory = FreshPath("gpu"),
                                     .capacity = 8,
                                     .device = Device::Cuda(0)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got cuda:0, want cpu"),
                             HasSubstr("TieredStorage"))));
}

TEST(TieredStorageTest, RaggedLeavesAreRefused) {
  const auto create = [](std::vector<std::string> ragged) {
    return TieredStorage::Create(
        {.below = *ListStorage::Create(
             {.capacity = 8, .ragged_leaves = std::move(ragged)}),
         .fast_capacity = 4});
  };
  EXPECT_THAT(create({"tokens"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Options::below"),
                             HasSubstr("ragged leaves"), HasSubstr("pad"))));
  RILL_EXPECT_OK(create({}));
}

}  // namespace
}  // namespace rill
