// SPDX-License-Identifier: Apache-2.0
// Which chunks a save writes after an earlier save, and which it links.
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::ListFiles;
using storage_internal::Chunk;
using storage_internal::ChunkShape;
using storage_internal::LaneRings;
using storage_internal::OverwriteCounts;

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 320;
constexpr int64_t kWidth = 1 << 14;  // 10 MiB in all, in chunks of 20 steps.
constexpr int64_t kChunkSteps = 20;

// Every byte tells of the number of its step.
TensorDict Rows(const Shape& batch, int64_t first) {
  TensorDict rows(batch);
  const int64_t count = batch.num_elements();
  auto wide = *Tensor::Empty(DType::kUInt8, batch.Concat({kWidth}));
  auto number = *Tensor::Empty(DType::kInt64, batch);
  for (int64_t i = 0; i < count; ++i) {
    std::fill_n(wide.data<uint8_t>() + i * kWidth, kWidth,
                static_cast<uint8_t>((first + i) % 251));
    number.data<int64_t>()[i] = first + i;
  }
  RILL_EXPECT_OK(rows.Set("wide", wide));
  RILL_EXPECT_OK(rows.Set("number", number));
  return rows;
}

std::unique_ptr<Storage> Make() {
  return *DenseStorage::Create(
      {.capacity = kLanes * kLaneCapacity, .lanes = kLanes});
}

void Append(Storage& storage, int64_t steps, int64_t first = 0) {
  RILL_ASSERT_OK(storage.Extend(Rows({kLanes, steps}, first)));
}

// Inodes of the chunks.
std::map<std::string, ino_t> Inodes(const std::string& directory) {
  std::map<std::string, ino_t> inodes;
  for (const std::string& name : ListFiles(JoinPath(directory, "rows"))) {
    struct stat info;
    EXPECT_EQ(stat(JoinPath(JoinPath(directory, "rows"), name).c_str(), &info),
              0);
    inodes[name] = info.st_ino;
  }
  return inodes;
}

// Chunks of `after` that are new files.
std::vector<std::string> Written(const std::map<std::string, ino_t>& before,
                                 const std::map<std::string, ino_t>& after) {
  std::vector<std::string> written;
  for (const auto& [name, inode] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != inode) {
      written.push_back(name);
    }
  }
  return written;
}

std::vector<Slot> LiveSlots(const Storage& storage) {
  std::vector<Slot> slots;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const int64_t end = storage.cursors()[lane].written;
    for (int64_t step = std::max<int64_t>(0, end - kLaneCapacity); step < end;
         ++step) {
      slots.push_back(storage.lanes().SlotOf(lane, step % kLaneCapacity));
    }
  }
  return slots;
}

void ExpectSameRows(const Storage& got, const Storage& want) {
  ASSERT_EQ(got.cursors(), want.cursors());
  TensorDict got_rows, want_rows;
  RILL_ASSERT_OK(got.Read(LiveSlots(want), &got_rows));
  RILL_ASSERT_OK(want.Read(LiveSlots(want), &want_rows));
  RILL_EXPECT_OK(got_rows.CheckEqual(want_rows));
}

// The directory has the bytes that a storage without a past saves.
void ExpectBytesOfAFullSave(const Storage& storage,
                            const std::string& directory) {
  const std::string again = FreshPath("full_save");
  // A storage that always writes all.
  RILL_ASSERT_OK_AND_ASSIGN(
      auto other, MemmapStorage::Create({.directory = FreshPath("full_files"),
                                         .capacity = kLanes * kLaneCapacity,
                                         .lanes = kLanes,
                                         .layout = StorageLayout::kColumns,
                                         .spec = storage.spec()}));
  RILL_ASSERT_OK(other->Load(directory));
  ExpectSameRows(*other, storage);
  RILL_ASSERT_OK(other->Save(again));
  const std::vector<std::string> files = ListFiles(directory);
  ASSERT_EQ(ListFiles(again), files);
  for (const std::string& file : files) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string want,
                              ReadFile(JoinPath(again, file)));
    EXPECT_THAT(ReadFile(JoinPath(directory, file)), IsOkAndHolds(want))
        << file;
  }
  for (const auto& [name, inode] : Inodes(again)) {
    EXPECT_NE(Inodes(directory)[name], inode) << name;
  }
}

void ExpectLinksAndWrites(std::unique_ptr<Storage> storage) {
  const std::string directory = FreshPath("linked");
  Append(*storage, 320);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto first = Inodes(directory);
  EXPECT_EQ(first.size(), 16u);
  // Nothing has changed.
  RILL_ASSERT_OK(storage->Save(directory));
  EXPECT_EQ(Inodes(directory), first);
  // 13 steps of the oldest chunk go, and 13 come as a new one.
  Append(*storage, 13, 5000);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto second = Inodes(directory);
  EXPECT_EQ(Written(first, second),
            (std::vector<std::string>{"0-0.bin", "0-16.bin"}));
  ExpectBytesOfAFullSave(*storage, directory);
  // One row in place: of its chunk, or of one beside it that it may be of.
  RILL_ASSERT_OK(storage->WriteAt(std::vector<Slot>{kLaneCapacity + 150},
                                  Rows({1}, 9000)));
  RILL_ASSERT_OK(storage->Save(directory));
  const std::vector<std::string> written = Written(second, Inodes(directory));
  EXPECT_THAT(written, ::testing::Contains("0-7.bin"));
  EXPECT_LE(written.size(), 4u);
  ExpectBytesOfAFullSave(*storage, directory);
}

TEST(IncrementalSaveTest, ChunksThatStayAreLinkedAndTheOthersWritten) {
  ExpectLinksAndWrites(Make());
}

TEST(IncrementalSaveTest, StoragesThatWriteInTurnLinkToo) {
  constexpr int64_t kCapacity = kLanes * kLaneCapacity;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto compressed,
      CompressedStorage::Create({.capacity = kCapacity, .lanes = kLanes}));
  ExpectLinksAndWrites(std::move(compressed));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto list, ListStorage::Create({.capacity = kCapacity, .lanes = kLanes}));
  ExpectLinksAndWrites(std::move(list));
}

TEST(IncrementalSaveTest, SavesElsewhereAreOfTheLastOneToo) {
  const std::string a = FreshPath("save_a"), b = FreshPath("save_b");
  auto storage = Make();
  Append(*storage, 100);
  RILL_ASSERT_OK(storage->Save(a));
  // Moved away, as a replay buffer's directory is put in place.
  const std::string moved = FreshPath("save_moved");
  ASSERT_EQ(rename(a.c_str(), moved.c_str()), 0);
  Append(*storage, 20, 3000);
  RILL_ASSERT_OK(storage->Save(b));
  EXPECT_EQ(Written(Inodes(moved), Inodes(b)),
            (std::vector<std::string>{"0-5.bin"}));
  // A file that is gone is written again.
  RILL_ASSERT_OK(RemoveAll(moved));
  const auto before = Inodes(b);
  RILL_ASSERT_OK(RemoveAll(b));
  RILL_ASSERT_OK(storage->Save(a));
  ExpectBytesOfAFullSave(*storage, a);
}

TEST(IncrementalSaveTest, ALoadedStorageGoesOnFromThatSave) {
  const std::string directory = FreshPath("loaded");
  auto storage = Make();
  Append(*storage, 333);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto before = Inodes(directory);
  auto loaded = Make();
  Append(*loaded, 10);
  RILL_ASSERT_OK(loaded->Load(directory));
  Append(*loaded, 3, 700);
  RILL_ASSERT_OK(loaded->Save(directory));
  EXPECT_EQ(Written(before, Inodes(directory)),
            (std::vector<std::string>{"0-0.bin", "0-16.bin"}));
  ExpectBytesOfAFullSave(*loaded, directory);
}

TEST(IncrementalSaveTest, RowsAfterAClearAreOthers) {
  const std::string directory = FreshPath("cleared");
  auto storage = Make();
  Append(*storage, 60);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto before = Inodes(directory);
  RILL_ASSERT_OK(storage->Clear());
  Append(*storage, 60, 4000);  // Cursors say the same as before.
  RILL_ASSERT_OK(storage->Save(directory));
  EXPECT_EQ(Written(before, Inodes(directory)).size(), 3u);
  ExpectBytesOfAFullSave(*storage, directory);
  // And after another storage's rows came.
  auto other = Make();
  Append(*other, 60, 8000);
  const std::string elsewhere = FreshPath("cleared_other");
  RILL_ASSERT_OK(other->Save(elsewhere));
  RILL_ASSERT_OK(storage->Load(elsewhere));
  RILL_ASSERT_OK(storage->Save(directory));
  auto loaded = Make();
  RILL_ASSERT_OK(loaded->Load(directory));
  ExpectSameRows(*loaded, *other);
}

TEST(IncrementalSaveTest, AFileThatSomebodyTouchedIsNotTaken) {
  const std::string directory = FreshPath("touched");
  auto storage = Make();
  Append(*storage, 200);
  RILL_ASSERT_OK(storage->Save(directory));
  const std::string chunk = JoinPath(directory, "rows/0-3.bin");
  RILL_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(chunk));
  bytes[100] ^= 1;
  formats_internal::WriteInPlace(chunk, bytes);
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "rows/0-5.bin")));
  RILL_ASSERT_OK(storage->Save(directory));
  auto loaded = Make();
  RILL_ASSERT_OK(loaded->Load(directory));
  ExpectSameRows(*loaded, *storage);
}

TEST(IncrementalSaveTest, WhereLinksFailChunksAreWritten) {
  const std::string directory = FreshPath("no_links");
  auto storage = Make();
  Append(*storage, 100);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto before = Inodes(directory);
  {
    const ScopedFaultHook hook("file.link", absl::UnavailableError("no links"));
    RILL_ASSERT_OK(storage->Save(directory));
  }
  EXPECT_EQ(Written(before, Inodes(directory)).size(), before.size());
  ExpectBytesOfAFullSave(*storage, directory);
}

TEST(IncrementalSaveTest, AFailedSaveLeavesTheLastOneToLink) {
  const std::string directory = FreshPath("failed");
  auto storage = Make();
  Append(*storage, 100);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto before = Inodes(directory);
  Append(*storage, 20);
  {
    const ScopedFaultHook hook("file.rename",
                               absl::ResourceExhaustedError("full"));
    EXPECT_THAT(storage->Save(directory), IsResourceExhausted());
  }
  EXPECT_EQ(Inodes(directory), before);
  RILL_ASSERT_OK(storage->Save(directory));
  EXPECT_EQ(Written(before, Inodes(directory)),
            (std::vector<std::string>{"0-5.bin"}));
}

TEST(IncrementalSaveTest, FilesThatOthersMayWriteAreReadAnew) {
  const std::string files = FreshPath("files"), directory = FreshPath("saved");
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage, MemmapStorage::Create({.directory = files,
                                           .capacity = kLanes * kLaneCapacity,
                                           .lanes = kLanes,
                                           .layout = StorageLayout::kColumns}));
  Append(*storage, 100);
  RILL_ASSERT_OK(storage->Save(directory));
  const auto before = Inodes(directory);
  RILL_ASSERT_OK(storage->Save(directory));
  EXPECT_EQ(Written(before, Inodes(directory)).size(), before.size());
}

// Any writes, saves to one of two directories, loads: what is saved is what
// the storage holds, and no chunk of a save changes afterwards.
TEST(IncrementalSaveTest, AnyHistorySavesWhatTheStorageHolds) {
  const std::string paths[] = {FreshPath("any_a"), FreshPath("any_b")};
  const Rng rng(61);
  auto storage = Make();
  int64_t first = 0;
  for (uint64_t round = 0; round < 40; ++round) {
    const int64_t lane = rng.UniformInt(round, 0, kLanes);
    const int64_t steps = 1 + rng.UniformInt(round, 1, 90);
    RILL_ASSERT_OK(
        storage->Extend(Rows({1, steps}, first), {.first_lane = lane}));
    first += steps;
    const std::vector<Slot> live = LiveSlots(*storage);
    if (round % 3 == 0) {
      const int64_t at =
          rng.UniformInt(round, 2, static_cast<int64_t>(live.size()));
      RILL_ASSERT_OK(storage->WriteAt({live[at]}, Rows({1}, first++)));
    }
    if (round % 13 == 12) {
      RILL_ASSERT_OK(storage->Clear());
    }
    const std::string& path = paths[rng.UniformInt(round, 3, 2)];
    RILL_ASSERT_OK(storage->Save(path));
    auto loaded = Make();
    RILL_ASSERT_OK(loaded->Load(path)) << round;
    ExpectSameRows(*loaded, *storage);
    if (round % 4 == 1) storage = std::move(loaded);
  }
}

TEST(ChunkShapeTest, ChunksAreOfSomeMiBAndPartsOfALane) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto shape = [](int64_t lanes, int64_t capacity, int64_t row_bytes) {
    return ChunkShape::Of({.count = lanes, .capacity = capacity}, row_bytes);
  };
  // All fits into one.
  EXPECT_EQ(shape(4, 100, 1000), (ChunkShape{.lanes = 4, .steps = 100}));
  EXPECT_EQ(shape(4, 100, 0), (ChunkShape{.lanes = 4, .steps = 100}));
  // 4 MiB of one lane; of several lanes; a row is more.
  EXPECT_EQ(shape(1, 1 << 20, 1024), (ChunkShape{.lanes = 1, .steps = 4096}));
  EXPECT_EQ(shape(1024, 1024, 1024), (ChunkShape{.lanes = 64, .steps = 64}));
  EXPECT_EQ(shape(2, 320, kWidth + 8),
            (ChunkShape{.lanes = kLanes, .steps = kChunkSteps}));
  EXPECT_EQ(shape(8, 64, 5 * kMiB), (ChunkShape{.lanes = 1, .steps = 1}));
  // Never more than about 1024.
  EXPECT_EQ(shape(1, int64_t{1} << 30, 1024),
            (ChunkShape{.lanes = 1, .steps = 1 << 20}));
}

TEST(ChunkShapeTest, EveryLiveRowIsInOneChunk) {
  const Rng rng(3);
  for (uint64_t round = 0; round < 200; ++round) {
    const Lanes lanes = {.count = 1 + rng.UniformInt(round, 0, 5),
                         .capacity = 1 + rng.UniformInt(round, 1, 30)};
    const ChunkShape shape = {.lanes = 1 + rng.UniformInt(round, 2, 4),
                              .steps = 1 + rng.UniformInt(round, 3, 12)};
    LaneRings rings(lanes);
    std::vector<Cursor> cursors;
    std::vector<int64_t> first_live;
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      cursors.push_back({rng.UniformInt(round, 10 + lane, 100)});
      first_live.push_back(std::min<int64_t>(
          rng.UniformInt(round, 20 + lane, 50), cursors.back().written));
    }
    rings.Restore(cursors, first_live);
    int64_t rows = 0;
    std::map<std::string, int> names;
    for (const Chunk& chunk : LiveChunks(rings, shape)) {
      EXPECT_GT(chunk.rows, 0);
      rows += chunk.rows;
      ++names[ChunkName(chunk)];
    }
    EXPECT_EQ(rows, rings.size());
    for (const auto& [name, times] : names) EXPECT_EQ(times, 1) << name;
    EXPECT_LE(LiveChunks(rings, shape, /*limit=*/2).size(), 3u);
  }
}

TEST(OverwriteCountsTest, AnOverwriteOfARowIsSeenInItsChunk) {
  const Rng rng(5);
  for (uint64_t round = 0; round < 300; ++round) {
    const Lanes lanes = {.count = 3,
                         .capacity = 1 + rng.UniformInt(round, 0, 40)};
    const ChunkShape shape = {
        .lanes = 2, .steps = 1 + rng.UniformInt(round, 1, lanes.capacity)};
    OverwriteCounts counts(lanes, shape);
    const int64_t lane = rng.UniformInt(round, 2, lanes.count);
    const int64_t step = rng.UniformInt(round, 3, 1000);
    const Chunk chunk = {.group = lane / shape.lanes,
                         .number = step / shape.steps};
    const uint64_t before = counts.Of(chunk);
    counts.Add({lanes.SlotOf(lane, step % lanes.capacity)});
    EXPECT_NE(counts.Of(chunk), before) << round;
  }
}

}  // namespace
}  // namespace rill
