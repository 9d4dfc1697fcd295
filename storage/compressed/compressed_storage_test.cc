// SPDX-License-Identifier: Apache-2.0
// Behaviour of CompressedStorage alone; its conformance test has the rest.
#include "rill/storage/compressed/compressed_storage.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

StorageSubject MakeSubject(int64_t capacity, int64_t lanes, int64_t block_rows,
                           int level = 3) {
  auto storage = CompressedStorage::Create({.capacity = capacity,
                                            .lanes = lanes,
                                            .block_rows = block_rows,
                                            .level = level});
  EXPECT_THAT(storage, IsOk());
  return StorageSubject(*std::move(storage), {lanes, capacity / lanes});
}

// Frames [steps, 64, 64] of which each is a disc that has moved on, or noise.
TensorDict Frames(int64_t first, int64_t steps, bool is_noise) {
  TensorDict batch({steps});
  auto pixels = Tensor::Zeros(DType::kUInt8, {steps, 64, 64});
  EXPECT_THAT(pixels, IsOk());
  const Rng rng(9);
  for (int64_t i = 0; i < steps * 64 * 64; ++i) {
    const int64_t dy = i / 64 % 64 - 32;
    const int64_t dx = i % 64 - (first + i / 4096) % 64;
    pixels->data<uint8_t>()[i] =
        is_noise ? static_cast<uint8_t>(rng.UniformInt(i, 0, 256))
        : dx * dx + dy * dy < 100 ? 200
                                  : 0;
  }
  RILL_EXPECT_OK(batch.Set("pixels", *pixels));
  return batch;
}

TEST(CompressedStorageTest, Example) {
  const TensorDict batch = Frames(0, 10, /*is_noise=*/false);
  RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                            CompressedStorage::Create({.capacity = 1 << 20}));
  RILL_ASSERT_OK(storage->Extend(batch).status());
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({0, 3, 1}, &rows));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                            batch.Gather(std::vector<int64_t>{0, 3, 1}));
  RILL_EXPECT_OK(rows.CheckEqual(want));
}

TEST(CompressedStorageTest, WrongOptionsAreNamed) {
  EXPECT_THAT(CompressedStorage::Create({}),
              IsInvalidArgument("capacity: got 0"));
  EXPECT_THAT(CompressedStorage::Create({.capacity = 9, .lanes = 2}),
              IsInvalidArgument("a multiple of lanes = 2"));
  EXPECT_THAT(CompressedStorage::Create({.capacity = 9, .lanes = 0}),
              IsInvalidArgument("lanes: got 0"));
  for (const int64_t block_rows : {-1, 5}) {
    EXPECT_THAT(
        CompressedStorage::Create(
            {.capacity = 8, .lanes = 2, .block_rows = block_rows}),
        IsInvalidArgument(absl::StrCat("block_rows: got ", block_rows)));
  }
  EXPECT_THAT(CompressedStorage::Create({.capacity = 8, .level = 23}),
              IsInvalidArgument("level: got 23"));
  EXPECT_THAT(CompressedStorage::Create({.capacity = INT64_MAX}),
              IsInvalidArgument("capacity: got 9223372036854775807"));
  TensorDictSpec wide;
  RILL_ASSERT_OK(wide.Set("x", LeafSpec{DType::kUInt8, {1 << 30}}));
  EXPECT_THAT(
      CompressedStorage::Create({.capacity = int64_t{1} << 40, .spec = wide}),
      IsInvalidArgument("lower the capacity"));
}

TEST(CompressedStorageTest, FramesTakeAFractionOfTheirRoomAndNoiseNoMore) {
  constexpr int64_t kRows = 512;
  for (const bool is_noise : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto storage,
                              CompressedStorage::Create({.capacity = kRows}));
    for (int64_t first = 0; first < kRows; first += 100) {
      RILL_ASSERT_OK(storage->Extend(Frames(first, 100, is_noise)).status());
      const StorageUsage usage = storage->MemoryUsage();
      EXPECT_LE(usage.memory, usage.full);
      EXPECT_GE(usage.memory + usage.saved, storage->size() * 4096);
    }
    const StorageUsage usage = storage->MemoryUsage();
    EXPECT_EQ(usage.row, 4096);
    if (is_noise) {
      EXPECT_LE(usage.saved, 0);
      EXPECT_LT(usage.memory, kRows * 4096 * 11 / 10);
    } else {
      EXPECT_LT(usage.memory, kRows * 4096 / 8);
      EXPECT_GT(usage.saved, kRows * 4096 * 7 / 8);
    }
    RILL_ASSERT_OK(storage->Clear());
    EXPECT_LT(storage->MemoryUsage().memory, kRows * 4096 / 16);
  }
}

// Blocks [0, 4), [4, 8), [8, 10) of lane 0, the same of lane 1.
TEST(CompressedStorageTest, RowsOfAnOlderRoundStayUntilTheirSlotIsWritten) {
  StorageSubject subject = MakeSubject(20, 2, 4);
  subject.ExtendAll(10);
  subject.Check("full");
  for (int64_t step = 1; step <= 25; ++step) {
    subject.Extend(/*first_lane=*/step % 2, 1, 1 + step % 3);
    subject.Check(absl::StrCat("step ", step));
  }
}

TEST(CompressedStorageTest, BatchesLongerThanALaneMayEndInTheirFirstBlock) {
  for (int64_t before = 0; before < 10; ++before) {
    for (const int64_t steps : {9, 10, 11, 13, 20, 27}) {
      StorageSubject subject = MakeSubject(10, 1, 4);
      subject.ExtendAll(before);
      subject.ExtendAll(steps);
      subject.Check(absl::StrCat(before, " and ", steps));
      subject.ExtendAll(3);
      subject.Check(absl::StrCat(before, ", ", steps, " and 3"));
    }
  }
}

TEST(CompressedStorageTest, OneWriteAtPatchesOpenAndSealedRows) {
  StorageSubject subject = MakeSubject(20, 2, 4);
  subject.ExtendAll(12);  // Slots 0, 1 and 10, 11 lie open.
  const size_t action = ConformanceLeafNumber("action");
  const size_t wide = ConformanceLeafNumber("next/deep/wide");
  const size_t nothing = ConformanceLeafNumber("nothing");
  subject.WriteAt({3, 0, 2, 19, 3, 0, 9, 11, 3}, {action, wide, nothing});
  subject.Check("mixed");
  subject.WriteAt({5}, {nothing});
  subject.Check("a leaf without bytes");
  subject.ExtendAll(3);  // What was patched open is sealed now.
  subject.Check("sealed");
}

TEST(CompressedStorageTest, RandomOperationsOverManyBlocksAgreeWithTheOracle) {
  uint64_t seed = 40;
  for (const int64_t block_rows : {1, 2, 7, 16, 50}) {
    const Rng rng(++seed);
    StorageSubject subject = MakeSubject(150, 3, block_rows, /*level=*/1);
    const std::vector<std::string> keys = {"pixels", "action"};
    TensorDict out;
    for (uint64_t i = 0; i < 120; ++i) {
      const int64_t lane = rng.UniformInt(i, 0, 3);
      const int64_t count = 1 + rng.UniformInt(i, 1, 3 - lane);
      subject.Extend(lane, count,
                     1 + rng.UniformInt(i, 2, i % 9 == 0 ? 70 : 9));
      const std::vector<Slot> live = subject.oracle().LiveSlots();
      std::vector<Slot> slots;
      for (uint32_t k = 0; k < 12; ++k) {
        slots.push_back(
            live[rng.UniformInt(i, 3 + k, static_cast<int64_t>(live.size()))]);
      }
      RILL_ASSERT_OK(subject.storage().ReadLeaves(slots, keys, &out));
      for (const std::string& key : keys) {
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor want,
                                  subject.oracle().Rows(slots).Get(key));
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor got, out.Get(key));
        TensorDict pair({12}), other({12});
        RILL_ASSERT_OK(pair.Set(key, got));
        RILL_ASSERT_OK(other.Set(key, want));
        RILL_ASSERT_OK(pair.CheckEqual(other)) << i;
      }
      if (i % 3 == 0) subject.WriteAt(slots, {i % 13, (i + 5) % 13});
      if (i % 10 == 0 || i > 115) subject.Check(absl::StrCat(seed, " ", i));
      if (HasFatalFailure()) return;
    }
  }
}

// Whichever of the blocks of a write finds no memory, nothing has changed.
TEST(CompressedStorageTest, WritesWithoutMemoryChangeNothing) {
  StorageSubject subject = MakeSubject(20, 2, 4);
  subject.ExtendAll(11);
  const int64_t calls = subject.mirror().num_calls();
  const TensorDict batch = ConformanceRows({2, 9}, SlotsFrom(500, 18));
  const TensorDict rows = ConformanceRows({4}, SlotsFrom(600, 4));
  for (int failing = 0; failing < 8; ++failing) {
    for (const bool is_append : {true, false}) {
      int reached = 0;
      ScopedFaultHook hook([&](absl::string_view, absl::string_view object) {
        return object == "sealed block" && reached++ == failing
                   ? absl::ResourceExhaustedError("no memory")
                   : absl::OkStatus();
      });
      const int blocks = is_append ? 6 : 3;
      if (failing >= blocks) continue;
      EXPECT_THAT(is_append ? subject.storage().Extend(batch, {}).status()
                            : subject.storage().WriteAt({0, 5, 9, 15}, rows),
                  IsResourceExhausted())
          << failing;
    }
    subject.Check(absl::StrCat(failing));
  }
  EXPECT_EQ(subject.mirror().num_calls(), calls);
  subject.ExtendAll(9);
  subject.WriteAt({0, 5, 9, 15}, {ConformanceLeafNumber("action")});
  subject.Check();
}

TEST(CompressedStorageTest, SavesMoveToAndFromADenseStorage) {
  const std::string directory =
      JoinPath(::testing::TempDir(), "compressed_to_dense");
  RILL_ASSERT_OK(RemoveAll(directory));
  StorageSubject subject = MakeSubject(20, 2, 4);
  subject.ExtendAll(13);
  RILL_ASSERT_OK(subject.storage().Save(directory));
  RILL_ASSERT_OK_AND_ASSIGN(auto dense,
                            DenseStorage::Create({.capacity = 20, .lanes = 2}));
  RILL_ASSERT_OK(dense->Load(directory));
  const std::vector<Slot> live = subject.oracle().LiveSlots();
  TensorDict rows;
  RILL_ASSERT_OK(dense->Read(live, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(subject.oracle().Rows(live)));
  RILL_ASSERT_OK(dense->Save(directory));
  StorageSubject fresh = MakeSubject(20, 2, 7);
  RILL_ASSERT_OK(fresh.storage().Load(directory));
  fresh.oracle() = subject.oracle();
  fresh.ExtendAll(2);
  fresh.Check();
}

}  // namespace
}  // namespace rill
